//! Commands that handle files: their effects are the paths in their words. Rows list every flag that keeps this true.

use super::ArgMeaning::{Copies, Deletes, Moves, Reads, Skip1Writes, Wraps, Writes};
use super::EffectKind::{Files, Looks};
use super::{ProgramRow, row};

pub(super) const ROWS: &[ProgramRow] = &[
    row("mkdir", Files, Writes, "-p -v -m= --parents --verbose --mode="),
    row("touch", Files, Writes, "-a -m -c -d= -t= -h -r< --no-create --date= --time= --reference< --no-dereference"),
    row("rmdir", Files, Deletes, "-p -v --parents --verbose --ignore-fail-on-non-empty"),
    row(
        "rm",
        Files,
        Deletes,
        "-r -R -f -v -d -i -I --recursive --force --verbose --dir --one-file-system --preserve-root?",
    ),
    row("unlink", Files, Deletes, ""),
    row("shred", Files, Deletes, "-u -z -f -v -n= --remove? --zero --force --iterations="),
    row(
        "cp",
        Files,
        Copies,
        "-a -r -R -p -f -n -u -v -d -L -P -H -i -x -l -s -T -t/ --archive --recursive --force --no-clobber --update? --verbose --preserve? --no-preserve= --no-dereference --dereference --parents --target-directory/ --no-target-directory --reflink? --sparse= --backup? -b --suffix= -S=",
    ),
    row(
        "mv",
        Files,
        Moves,
        "-f -n -u -v -i -T -t/ --force --no-clobber --update? --verbose --target-directory/ --no-target-directory --backup? -b --suffix= -S=",
    ),
    row(
        "ln",
        Files,
        Copies,
        "-s -f -n -v -r -T -t/ -i -L -P --symbolic --force --no-dereference --verbose --relative --no-target-directory --target-directory/",
    ),
    row(
        "install",
        Files,
        Copies,
        "-d -D -m= -v -p -C -t/ -T --directory --mode= --verbose --target-directory/ --no-target-directory",
    ),
    row("chmod", Files, Skip1Writes, "-R -v -c -f --recursive --verbose --changes --silent"),
    row("tee", Files, Writes, "-a -i -p --append --ignore-interrupts --output-error?"),
    row("truncate", Files, Writes, "-s= -c -o -r< --size= --no-create --reference<"),
    row("cd", Looks, Reads, "-P -L"),
    // They only start another command, which is judged.
    row("timeout", Looks, Wraps(1), "-k= -s= -v --kill-after= --signal= --preserve-status --foreground --verbose"),
    row("nice", Looks, Wraps(0), "-0 -n= --adjustment="),
    row("ionice", Looks, Wraps(0), "-c= -n= -t --class= --classdata= --ignore"),
    row("nohup", Looks, Wraps(0), ""),
    row("time", Looks, Wraps(0), "-p -v -a -o> -f= --portability --verbose --append --output> --format="),
    row("stdbuf", Looks, Wraps(0), "-i= -o= -e= --input= --output= --error="),
    row("setsid", Looks, Wraps(0), "-c -f -w --ctty --fork --wait"),
    row("command", Looks, Wraps(0), "-p"),
    row("builtin", Looks, Wraps(0), ""),
    row("noglob", Looks, Wraps(0), ""),
    row("chrt", Looks, Wraps(1), "-b -f -i -o -r"),
    row("taskset", Looks, Wraps(1), "-a -c"),
];
