//! The phrases about models, their providers, and names that are no commands yet.

use super::Lang;

phrases! {
    models_note: "Prices are for a million tokens. Choose one with --model; add your own under `catalog` in your settings.",
        "价格按一百万个 token 计。用 --model 选择；可在设置的 `catalog` 中添加自己的模型。";
    key_set: "set", "已设置";
    key_unset: "not set", "未设置";
    key_not_needed: "not needed", "不需要";
    online_word: "online", "联机";
    untested_word: "not tested", "未检查";
    clock_word: "clock", "时钟";
    clock_wrong(time: &str): "it says {time}: set it, or secure connections fail and times in the journal are wrong",
        "现在显示 {time}：请校准，否则安全连接会失败，日志中的时间也不正确";
}

/// The part that needs a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The key is wrong, or may not use the model.
    Key,
    /// The server is not there, or does not answer.
    Server,
    /// There is no such model.
    Model,
    /// What answers at this address is no model.
    Address,
    /// The provider cannot answer now.
    Busy,
    /// Something else, as the provider says it.
    Request,
}

impl Lang {
    /// A name that is reserved: what to use today, and how to send it as a prompt.
    pub fn reserved(self, name: &str) -> String {
        let instead = self.instead_of(name);
        say!(
            self,
            "`max-team {name}` is not available in this version, and nothing was sent to a model. {instead} \
             To send the word as a prompt: `max-team -p \"{name}\"`",
            "此版本尚无 `max-team {name}`，未向模型发送任何内容。{instead}若要把这个词作为提示发送：`max-team -p \"{name}\"`"
        )
    }

    /// What `doctor` leaves untested.
    pub fn untested(self, online: bool) -> String {
        let others = match self {
            Self::En => "the fallback model, web pages, and the servers of tools and of MCP",
            Self::Zh => "备用模型、网页、工具及 MCP 的服务",
        };
        if online {
            return others.to_owned();
        }
        say!(
            self,
            "whether key, server and model work (`max-team doctor --online` sends one small request), {others}",
            "密钥、服务器和模型是否可用（`max-team doctor --online` 会发送一个很小的请求）、{others}"
        )
    }

    /// The model has answered the request of `doctor --online`.
    pub fn online_answered(self, model: &str, ms: u128, cost: Option<&str>) -> String {
        let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        say!(self, "{model} answered in {ms} ms{cost}", "{model} 在 {ms} 毫秒内回答{cost}")
    }

    /// The request of `doctor --online` failed.
    pub fn online_failed(self, trouble: Trouble, model: &str, key: &str, detail: &str) -> String {
        match trouble {
            Trouble::Key => {
                say!(self, "the key was refused (it comes from {key}): {detail}", "密钥被拒绝（来自 {key}）：{detail}")
            }
            Trouble::Server => say!(self, "the server does not answer: {detail}", "服务器没有回答：{detail}"),
            Trouble::Model => say!(
                self,
                "the model `{model}` was refused: {detail}. `max-team models` lists known ones",
                "模型 `{model}` 被拒绝：{detail}。`max-team models` 列出已知的模型"
            ),
            Trouble::Address => {
                say!(self, "no model answers at this address: {detail}", "此地址没有模型服务：{detail}")
            }
            Trouble::Busy => say!(self, "the provider cannot answer now: {detail}", "服务商现在无法回答：{detail}"),
            Trouble::Request => say!(self, "the request was refused: {detail}", "请求被拒绝：{detail}"),
        }
    }

    /// The command that does the job of a reserved name today.
    fn instead_of(self, name: &str) -> &'static str {
        match (name, self) {
            ("acp" | "serve", Self::En) => {
                "Another program can drive the team with `max-team -p --input-format stream-json --output-format stream-json`."
            }
            ("acp" | "serve", Self::Zh) => {
                "其他程序可用 `max-team -p --input-format stream-json --output-format stream-json` 驱动团队。"
            }
            ("mcp", Self::En) => {
                "MCP servers are read from agent files but not connected; `max-team doctor` lists them."
            }
            ("mcp", Self::Zh) => "会读取成员文件中的 MCP 服务，但不连接；`max-team doctor` 列出它们。",
            ("fetch", Self::En) => "Agents fetch pages with their `http_get` tool: `max-team -p \"summarise URL\"`.",
            ("fetch", Self::Zh) => "成员用 `http_get` 工具获取网页：`max-team -p \"总结 URL\"`。",
            ("cron", Self::En) => "Let the system's scheduler run `max-team -p \"PROMPT\"`.",
            ("cron", Self::Zh) => "请让系统的定时任务运行 `max-team -p \"提示\"`。",
            (_, Self::En) => "The team is reached through the chat (`max-team`), `max-team -p` and `max-team send`.",
            (_, Self::Zh) => "目前可通过对话（`max-team`）、`max-team -p` 和 `max-team send` 使用团队。",
        }
    }
}
