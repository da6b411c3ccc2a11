//! What can be set, and the same as text: `key:value,key:value`, as in `BEDPLATE_RUNTIME_ALLOC_CONF`.

use crate::error::{Error, Result};

/// What can be set. The defaults are measured: see `benchmarks/runtime`.
#[derive(Clone, Debug)]
pub struct Config {
    /// Blocks are multiples of it, bytes; a power of two.
    pub unit: u64,
    /// Use address mapping where the device has it.
    pub mapping: bool,
    /// Bytes of a piece; 0 takes the device's least.
    pub piece: u64,
    /// Addresses reserved for an arena, bytes.
    pub addresses: u64,
    /// With mapping: thousandths above the peak of live bytes that are taken
    /// from the device before free memory is moved.
    pub slack_milli: u64,
    /// Without: thousandths above the peak of live bytes before empty segments
    /// are given back to make room for a new one.
    pub plain_slack_milli: u64,
    /// Without: see `Arena::whole_milli`.
    pub whole_milli: u64,
    /// Bytes that the quick bins of a stream may hold in a pool.
    pub quick_bytes: u64,
    /// Freed bytes kept from reuse, and poisoned; 0 without sanitizer.
    pub quarantine_bytes: u64,
    /// Wait on the host for free blocks before a request fails.
    pub wait: bool,
}

/// The piece of PyTorch's pool, bytes: a call of the driver takes as long for it as for the
/// device's least, and there are a tenth as many (docs/decisions/0022).
pub const WIDE_PIECE: u64 = 20 << 20;

impl Default for Config {
    fn default() -> Self {
        Config {
            unit: 512,
            mapping: true,
            piece: 0,
            addresses: 1 << 40,
            slack_milli: 20,
            plain_slack_milli: 100,
            whole_milli: 1600,
            quick_bytes: 8 << 20,
            quarantine_bytes: 0,
            wait: true,
        }
    }
}

/// The options' names.
pub const KEYS: [&str; 10] = [
    "unit",
    "mapping",
    "piece",
    "addresses",
    "slack_milli",
    "plain_slack_milli",
    "whole_milli",
    "quick_bytes",
    "quarantine_bytes",
    "wait",
];

/// Changes a configuration by a text; an empty one changes nothing.
pub fn apply(config: &mut Config, text: &str) -> Result<()> {
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once(':').ok_or_else(|| {
            Error::Invalid(format!("option `{part}` has no value; write it as key:value"))
        })?;
        let (key, value) = (key.trim(), value.trim());
        match key {
            "mapping" => config.mapping = switch(key, value)?,
            "wait" => config.wait = switch(key, value)?,
            _ => {
                let number = value.parse().map_err(|_| {
                    Error::Invalid(format!("option `{key}` is `{value}`, which is no number"))
                });
                *field(config, key)? = number?;
            }
        }
    }
    Ok(())
}

fn field<'a>(config: &'a mut Config, key: &str) -> Result<&'a mut u64> {
    Ok(match key {
        "unit" => &mut config.unit,
        "piece" => &mut config.piece,
        "addresses" => &mut config.addresses,
        "slack_milli" => &mut config.slack_milli,
        "plain_slack_milli" => &mut config.plain_slack_milli,
        "whole_milli" => &mut config.whole_milli,
        "quick_bytes" => &mut config.quick_bytes,
        "quarantine_bytes" => &mut config.quarantine_bytes,
        _ => {
            let known = KEYS.join(", ");
            return Err(Error::Invalid(format!("no option is called `{key}`; there are {known}")));
        }
    })
}

fn switch(key: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(Error::Invalid(format!("option `{key}` is `{value}`; write on or off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_or_refused_by_name() {
        let mut config = Config::default();
        apply(&mut config, "unit:256, mapping:off,quick_bytes:0,").unwrap();
        assert_eq!((config.unit, config.mapping, config.quick_bytes), (256, false, 0));
        for (text, part) in [
            ("unit", "no value"),
            ("unit:x", "no number"),
            ("u:1", "no option"),
            ("wait:maybe", "on or off"),
        ] {
            let error = apply(&mut config, text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
