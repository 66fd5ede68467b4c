//! Options from JSON.

use rullama_chat::{Message, Think, Tool, parse_messages, parse_tools};
use rullama_engine::{CacheFormat, ChatOptions, Entropy, GenerateOptions, LoadOptions, OptionRange};
use rullama_gpu::{GpuOptions, Residency};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    error::{Failure, failure, plain},
    host,
};

/// The options of a load.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LoadRequest {
    context: Option<u32>,
    /// The format of keys and values. Without it, f16: GPUs read it fastest, without visible loss.
    kv: Option<String>,
    /// The maximum bytes of GPU memory.
    memory: Option<u64>,
    residency: Option<String>,
    /// The maximum number of prompt tokens in one step.
    rows: Option<u32>,
    floor: Option<bool>,
    subgroups: Option<bool>,
    self_test: Option<bool>,
}

impl LoadRequest {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let given = object(text)?;
        // First, because these errors name the option and its range.
        for (option, range) in
            [("context", OptionRange::CONTEXT), ("memory", OptionRange::MEMORY), ("rows", OptionRange::ROWS)]
        {
            if let Some(value) = given.get(option).filter(|value| !value.is_null()) {
                range.check_json(option, value).map_err(failure)?;
            }
        }
        serde_json::from_value(given.into()).map_err(|error| plain("option.wrong_type", &error.to_string()))
    }

    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    pub(crate) fn load(&self) -> Result<LoadOptions, Failure> {
        let kv = self.kv.as_deref().map_or(Ok(CacheFormat::F16), str::parse);
        let kv = kv.map_err(|error| plain("option.wrong_type", &error.to_string()))?;
        let mut options = LoadOptions::default().kv(kv).entropy(Entropy::new(host::entropy));
        options.context = self.context;
        options.gpu_memory = self.memory;
        options.rows = self.rows;
        let residency = self.residency.as_deref().map(str::parse::<Residency>).transpose();
        options.residency = residency.map_err(|error| plain("option.wrong_type", &error.to_string()))?;
        Ok(options)
    }

    pub(crate) fn gpu(&self) -> GpuOptions {
        let mut options = GpuOptions::default();
        if self.floor == Some(true) {
            options = options.floor();
        }
        if self.subgroups == Some(false) {
            options = options.without_subgroups();
        }
        if self.self_test == Some(false) {
            options = options.without_self_test();
        }
        options
    }
}

/// The options of a reply without a chat template.
pub(crate) fn generate_options(text: &str) -> Result<GenerateOptions, Failure> {
    generate_from(object(text)?)
}

/// The options of a reply to a conversation: those of generation, `think` and `tools`.
pub(crate) fn chat_options(text: &str) -> Result<ChatOptions, Failure> {
    let mut options = object(text)?;
    let think = options.remove("think").unwrap_or_default();
    let tools = tools(options.remove("tools"))?;
    let think = Think::from_value(&think).map_err(failure)?.is_on();
    Ok(ChatOptions { generate: generate_from(options)?, think, tools })
}

fn tools(value: Option<Value>) -> Result<Vec<Tool>, Failure> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        // Parsed from text again, because errors then name the place.
        Some(tools) => parse_tools(&tools.to_string()).map_err(failure),
    }
}

pub(crate) fn messages(text: &str) -> Result<Vec<Message>, Failure> {
    parse_messages(text).map_err(failure)
}

fn generate_from(options: Map<String, Value>) -> Result<GenerateOptions, Failure> {
    GenerateOptions::try_from(options).map_err(failure)
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text).map_err(|error| plain("option.wrong_type", &error.to_string()))
}
