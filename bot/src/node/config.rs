//! Which node to follow, and how far it is trusted.

use crate::market::Address;
use crate::solver::Fee;
use regatta_chain::endpoint::Endpoint;
use regatta_chain::follow::FollowConfig;
use regatta_chain::{read, rpc};
use std::str::FromStr;
use std::time::Duration;

/// The fee of an exchange that names none, in hundredths of a per cent of the input.
const DEFAULT_FEE: u16 = 30;

/// Hundredths of a per cent in the whole.
const WHOLE: u16 = 10_000;

/// An exchange by the contract that makes its pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FactoryArg {
    /// The factory.
    pub address: Address,
    /// What part of the input its pools trade. It is not written on the chain: forks differ.
    pub fee: Fee,
}

impl FromStr for FactoryArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, points) = match text.split_once(':') {
            Some((address, points)) => (address, points.parse::<u16>().ok()),
            None => (text, Some(DEFAULT_FEE)),
        };
        let address = address.parse().map_err(|error| format!("{error}"))?;
        let fee = points
            .and_then(|points| WHOLE.checked_sub(points))
            .filter(|num| *num > 0)
            // The default in its usual terms, so that a market reads alike wherever it comes from.
            .map(|num| {
                if num == WHOLE - DEFAULT_FEE {
                    Ok(Fee::default())
                } else {
                    Fee::new(num, WHOLE)
                }
            });
        match fee {
            Some(Ok(fee)) => Ok(Self { address, fee }),
            _ => Err(format!(
                "it takes ADDRESS or ADDRESS:FEE with the fee in hundredths of a per cent, 0 to {}",
                WHOLE - 1
            )),
        }
    }
}

/// How a node is followed.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The chain that it has to be on, if that is fixed.
    pub chain_id: Option<u64>,
    /// The exchanges.
    pub factories: Vec<FactoryArg>,
    /// The most pools.
    pub most_pools: usize,
    /// What its sockets and calls may take.
    pub limits: rpc::Limits,
    /// How contracts are read.
    pub reading: read::Limits,
    /// How the chain is followed; the topics are set by whoever follows.
    pub follow: FollowConfig,
    /// How long finding the pools at the start may take.
    pub survey: Duration,
}

impl NodeConfig {
    /// The defaults for a node at `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            chain_id: None,
            factories: Vec::new(),
            most_pools: 20_000,
            limits: rpc::Limits::default(),
            reading: read::Limits::default(),
            follow: FollowConfig::default(),
            survey: Duration::from_mins(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factory_is_an_address_and_perhaps_a_fee() {
        let address = "0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f";
        let parse = |text: &str| text.parse::<FactoryArg>();
        let plain = parse(address).unwrap();
        assert_eq!(plain.address.to_string(), address);
        assert_eq!(plain.fee, Fee::default());
        assert_eq!(parse(&format!("{address}:30")).unwrap(), plain);
        let fork = parse(&format!("{address}:25")).unwrap();
        assert_eq!((fork.fee.num(), fork.fee.den()), (9975, 10_000));
        assert_eq!(parse(&format!("{address}:0")).unwrap().fee.num(), 10_000);
        for bad in [
            "",
            "0x12",
            &format!("{address}:"),
            &format!("{address}:10000"),
            &format!("{address}:x"),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
