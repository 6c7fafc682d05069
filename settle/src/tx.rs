//! Transactions with a base fee and a tip (EIP-1559), signed.
//!
//! Encoding: <https://eips.ethereum.org/EIPS/eip-1559>; without an access list.
//!
//! # Invariants
//! - One transaction and one key give one signature (RFC 6979), whose `s` is in the lower half (EIP-2).
//! - What decodes encodes to the same bytes.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Buf, BufMut, Decodable, Encodable, Header};
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};

use crate::key::Key;

/// The type's number, before the list.
const TYPE: u8 = 2;

/// A transaction that is not signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The chain it is for.
    pub chain_id: u64,
    /// Its number among its sender's.
    pub nonce: u64,
    /// Wei for each unit of gas that go to the block's maker.
    pub max_priority_fee_per_gas: u128,
    /// Wei for each unit of gas at most.
    pub max_fee_per_gas: u128,
    /// The gas it may use.
    pub gas_limit: u64,
    /// The account or contract; nobody to create a contract.
    pub to: Option<Address>,
    /// Wei it sends.
    pub value: U256,
    /// The call's data.
    pub input: Bytes,
}

/// A signed transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// What is signed.
    pub transaction: Transaction,
    /// Its encoding, as a node takes it.
    pub raw: Bytes,
    /// Its identity.
    pub hash: B256,
}

/// Why bytes are no transaction of this kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Another type.
    #[error("transaction of type {0:?}, not 2")]
    Type(Option<u8>),
    /// Not the encoding of such a list.
    #[error("transaction not as RLP has it: {0}")]
    Rlp(#[from] alloy_rlp::Error),
    /// With an access list, which nothing here makes.
    #[error("transaction with an access list, not without")]
    AccessList,
    /// A signature that no key makes.
    #[error("transaction whose signature is none, or has its s in the upper half")]
    Signature,
}

/// Why a transaction was not signed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the transaction could not be signed: {0}")]
pub struct SignError(String);

impl Transaction {
    /// The first nine fields: what a signature is over.
    fn encode_fields(&self, out: &mut dyn BufMut) {
        self.chain_id.encode(out);
        self.nonce.encode(out);
        self.max_priority_fee_per_gas.encode(out);
        self.max_fee_per_gas.encode(out);
        self.gas_limit.encode(out);
        match self.to {
            Some(to) => to.encode(out),
            None => out.put_u8(alloy_rlp::EMPTY_STRING_CODE),
        }
        self.value.encode(out);
        self.input.encode(out);
        out.put_u8(alloy_rlp::EMPTY_LIST_CODE);
    }

    /// The type, then the list of the fields and of `more`, which is encoded already.
    fn encode_with(&self, more: &[u8]) -> Vec<u8> {
        let mut payload = Vec::new();
        self.encode_fields(&mut payload);
        payload.extend_from_slice(more);
        let mut out = vec![TYPE];
        let header = Header {
            list: true,
            payload_length: payload.len(),
        };
        header.encode(&mut out);
        out.extend_from_slice(&payload);
        out
    }

    /// What is signed.
    #[must_use]
    pub fn signing_hash(&self) -> B256 {
        keccak256(self.encode_with(&[]))
    }

    /// Signs it: CPU work of some hundred microseconds.
    pub fn sign(&self, key: &Key) -> Result<Signed, SignError> {
        let signed = key
            .signer()
            .sign_prehash_recoverable(self.signing_hash().as_slice());
        let (signature, recovery) = signed.map_err(|error| SignError(error.to_string()))?;
        Ok(self.with_signature(&signature, recovery.is_y_odd()))
    }

    fn with_signature(&self, signature: &Signature, odd: bool) -> Signed {
        let mut fields = Vec::new();
        odd.encode(&mut fields);
        U256::from_be_slice(&signature.r().to_bytes()).encode(&mut fields);
        U256::from_be_slice(&signature.s().to_bytes()).encode(&mut fields);
        let raw = self.encode_with(&fields);
        Signed {
            transaction: self.clone(),
            hash: keccak256(&raw),
            raw: raw.into(),
        }
    }
}

/// What `raw` encodes: its fields and signature.
fn decode(raw: &[u8]) -> Result<(Transaction, Signature, bool), DecodeError> {
    let (first, mut rest) = match raw.split_first() {
        Some((&TYPE, rest)) => (TYPE, rest),
        other => return Err(DecodeError::Type(other.map(|(first, _)| *first))),
    };
    debug_assert_eq!(first, TYPE);
    let header = Header::decode(&mut rest)?;
    if !header.list {
        return Err(alloy_rlp::Error::UnexpectedString.into());
    }
    if header.payload_length != rest.len() {
        return Err(alloy_rlp::Error::UnexpectedLength.into());
    }
    let transaction = Transaction {
        chain_id: Decodable::decode(&mut rest)?,
        nonce: Decodable::decode(&mut rest)?,
        max_priority_fee_per_gas: Decodable::decode(&mut rest)?,
        max_fee_per_gas: Decodable::decode(&mut rest)?,
        gas_limit: Decodable::decode(&mut rest)?,
        to: if rest.first() == Some(&alloy_rlp::EMPTY_STRING_CODE) {
            rest.advance(1);
            None
        } else {
            Some(Decodable::decode(&mut rest)?)
        },
        value: Decodable::decode(&mut rest)?,
        input: Decodable::decode(&mut rest)?,
    };
    if rest.first() != Some(&alloy_rlp::EMPTY_LIST_CODE) {
        return Err(DecodeError::AccessList);
    }
    rest.advance(1);
    let odd = bool::decode(&mut rest)?;
    let (r, s) = (U256::decode(&mut rest)?, U256::decode(&mut rest)?);
    if !rest.is_empty() {
        return Err(alloy_rlp::Error::UnexpectedLength.into());
    }
    let signature = Signature::from_scalars(r.to_be_bytes::<32>(), s.to_be_bytes::<32>());
    let signature = signature.map_err(|_| DecodeError::Signature)?;
    if signature.normalize_s().is_some() {
        return Err(DecodeError::Signature);
    }
    Ok((transaction, signature, odd))
}

impl Signed {
    /// Reads an encoded transaction.
    pub fn decode(raw: &[u8]) -> Result<Self, DecodeError> {
        let (transaction, ..) = decode(raw)?;
        Ok(Self {
            transaction,
            raw: Bytes::copy_from_slice(raw),
            hash: keccak256(raw),
        })
    }

    /// Who signed it: CPU work of some hundred microseconds.
    pub fn sender(&self) -> Result<Address, DecodeError> {
        let (transaction, signature, odd) = decode(&self.raw)?;
        let hash = transaction.signing_hash();
        let id = RecoveryId::new(odd, false);
        let key = VerifyingKey::recover_from_prehash(hash.as_slice(), &signature, id);
        let key = key.map_err(|_| DecodeError::Signature)?;
        Ok(crate::key::address_of(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{address, b256, hex};
    use proptest::prelude::*;

    /// Mainnet's transaction 0x0ec0…2ee0.
    fn published() -> Transaction {
        Transaction {
            chain_id: 1,
            nonce: 0x42,
            gas_limit: 44_386,
            to: Some(address!("6069a6c32cf691f5982febae4faf8a6f3ab2f0f6")),
            value: U256::ZERO,
            input: hex!("a22cb4650000000000000000000000005eee75727d804a2b13038928d36f8b188945a57a0000000000000000000000000000000000000000000000000000000000000000").into(),
            max_fee_per_gas: 0x4_a817_c800,
            max_priority_fee_per_gas: 0x3b9a_ca00,
        }
    }

    #[test]
    fn a_published_transaction_has_its_hash_and_its_sender() {
        let transaction = published();
        assert_eq!(
            transaction.signing_hash(),
            b256!("0d5688ac3897124635b6cf1bc0e29d6dfebceebdc10a54d74f2ef8b56535b682")
        );
        let signature = Signature::from_scalars(
            hex!("840cfc572845f5786e702984c2a582528cad4b49b2a10b9db1be7fca90058565"),
            hex!("25e7109ceb98168d95b09b18bbf6b685130e0562f233877d492b94eee0c5b6d1"),
        );
        let signed = transaction.with_signature(&signature.unwrap(), false);
        assert_eq!(
            signed.hash,
            b256!("0ec0b6a2df4d87424e5f6ad2a654e27aaeb7dac20ae9e8385cc09087ad532ee0")
        );
        let sender = address!("dd6b8b3dc6b7ad97db52f08a275ff4483e024cea");
        assert_eq!(signed.sender().unwrap(), sender);
        assert_eq!(Signed::decode(&signed.raw).unwrap(), signed);
    }

    #[test]
    fn the_key_of_eip_155s_example_signs_as_itself_and_always_the_same() {
        let key = Key::from_bytes(&[0x46; 32]).unwrap();
        let known = address!("9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
        assert_eq!(key.address(), known);
        let signed = published().sign(&key).unwrap();
        assert_eq!(signed.sender().unwrap(), known);
        assert_eq!(signed, published().sign(&key).unwrap());
    }

    #[test]
    fn what_is_not_a_transaction_is_refused() {
        let raw = published()
            .sign(&Key::from_bytes(&[1; 32]).unwrap())
            .unwrap()
            .raw;
        assert_eq!(Signed::decode(&[]), Err(DecodeError::Type(None)));
        assert_eq!(Signed::decode(&[1, 0xc0]), Err(DecodeError::Type(Some(1))));
        for end in 1..raw.len() {
            assert!(Signed::decode(&raw[..end]).is_err(), "cut at {end}");
        }
        let longer: Vec<u8> = raw.iter().copied().chain([0]).collect();
        assert!(Signed::decode(&longer).is_err());
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(
            (chain_id, nonce, gas_limit) in any::<(u64, u64, u64)>(),
            (tip, fee) in any::<(u128, u128)>(),
            to: Option<[u8; 20]>,
            value: [u64; 4],
            input: Vec<u8>,
            key in 1_u8..255,
        ) {
            let transaction = Transaction {
                chain_id, nonce, gas_limit,
                max_priority_fee_per_gas: tip,
                max_fee_per_gas: fee,
                to: to.map(Address::from),
                value: U256::from_limbs(value),
                input: input.into(),
            };
            let key = Key::from_bytes(&[key; 32]).unwrap();
            let signed = transaction.sign(&key).unwrap();
            let read = Signed::decode(&signed.raw).unwrap();
            prop_assert_eq!(&read, &signed);
            prop_assert_eq!(read.sender().unwrap(), key.address());
        }

        #[test]
        fn any_bytes_are_a_transaction_or_an_error(bytes: Vec<u8>) {
            let mut raw = vec![TYPE];
            raw.extend(bytes);
            if let Ok(read) = Signed::decode(&raw) {
                prop_assert_eq!(read.raw.as_ref(), &raw[..]);
            }
        }
    }
}
