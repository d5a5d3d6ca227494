import { defineConfig } from 'vite';

// File names carry no hash: the server sends an ETag instead, and the files are committed.
export default defineConfig({
  root: 'src',
  publicDir: 'public',
  base: '/',
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    sourcemap: false,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: 'app.js',
        assetFileNames: 'app[extname]',
        codeSplitting: false,
      },
    },
  },
  server: {
    proxy: { '/api': process.env.MAX_TEAM_SERVER ?? 'http://127.0.0.1:8080' },
  },
});
