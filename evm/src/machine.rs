//! The machine that a seat keeps: revm, set up once, for calls that nobody pays for.
//!
//! It differs from a node's in this: the sender needs no money, its nonce is not looked at, and nobody is paid for
//! the gas. Gas is counted as a node counts it.
//!
//! # Invariants
//! - A run leaves nothing behind that a later one could see, but for what it read (`Db::touched`).
//! - A run asks the state for the sender's account only if a contract does.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use revm::bytecode::opcode;
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{BlockEnv as RevmBlock, CfgEnv, Context, ContextTr, Evm, JournalTr, TxEnv};
use revm::handler::instructions::EthInstructions;
use revm::handler::{EthFrame, EthPrecompiles, Handler, MainBuilder, pre_execution};
use revm::inspector::InspectorHandler;
use revm::interpreter::instructions::{contract, host};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    InitialAndFloorGas, Instruction, InstructionContext, InstructionExecResult,
};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{AddressMap, HashSet};

use crate::call::{BlockEnv, Executor};
use crate::db::{Db, NoBlockHash};
use crate::learned::Learned;
use crate::state::{Key, State};
use crate::trace::Trace;

pub(crate) type Ctx = Context<RevmBlock, TxEnv, CfgEnv, Db>;
type Machine =
    Evm<Ctx, Trace, EthInstructions<EthInterpreter, Ctx>, EthPrecompiles, EthFrame<EthInterpreter>>;
pub(crate) type Error = EVMError<NoBlockHash>;

/// What a seat keeps between simulations: the machine, its memory, and which slots tokens use. A simulation over a
/// new one gives the same outcome, later.
#[derive(Debug)]
pub struct Scratch {
    evm: Machine,
    pub(crate) learned: Learned,
}

/// One transaction.
pub(crate) struct Tx<'a> {
    pub(crate) block: &'a BlockEnv,
    pub(crate) executor: Option<&'a Executor>,
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) input: Bytes,
    pub(crate) gas: u64,
}

/// What a run ended with, and what it did not know. If that is not empty, the end means nothing.
pub(crate) struct Run {
    pub(crate) end: Result<ExecutionResult, Error>,
    pub(crate) missing: Vec<Key>,
}

impl Scratch {
    /// A machine for a chain, by the rules of the latest fork that revm names its default.
    #[must_use]
    pub fn new(chain_id: u64) -> Self {
        Self::with_rules(chain_id, SpecId::default())
    }

    /// A machine for a chain, by the rules of a fork: Cancun or later, for the executor uses transient storage.
    #[must_use]
    pub fn with_rules(chain_id: u64, rules: SpecId) -> Self {
        let mut ctx = Ctx::new(Db::default(), rules);
        ctx.cfg.chain_id = chain_id;
        let mut evm = ctx.build_mainnet_with_inspector(Trace::default());
        note_uses_of_funds(&mut evm.instruction);
        Self {
            evm,
            learned: Learned::default(),
        }
    }

    /// Runs a transaction over the state.
    pub(crate) fn run(&mut self, state: &State, tx: Tx<'_>) -> Run {
        self.begin(state, tx);
        let end = Unpaid.run(&mut self.evm);
        self.end(end)
    }

    /// The same, and looks on. The trace is read with [`Scratch::trace`].
    pub(crate) fn run_traced(&mut self, state: &State, tx: Tx<'_>) -> Run {
        self.evm.inspector.clear();
        self.begin(state, tx);
        let end = Unpaid.inspect_run(&mut self.evm);
        self.end(end)
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.evm.inspector
    }

    pub(crate) fn db(&mut self) -> &mut Db {
        self.evm.ctx.db_mut()
    }

    fn begin(&mut self, state: &State, tx: Tx<'_>) {
        let ctx = &mut self.evm.ctx;
        ctx.db_mut().begin(state, tx.executor);
        let block = tx.block;
        ctx.block.number = U256::from(block.number);
        ctx.block.timestamp = U256::from(block.timestamp);
        ctx.block.basefee = block.base_fee;
        ctx.block.gas_limit = block.gas_limit;
        ctx.block.beneficiary = block.beneficiary;
        ctx.block.prevrandao = Some(block.random);
        ctx.tx.caller = tx.from;
        ctx.tx.gas_limit = tx.gas.min(block.gas_limit);
        ctx.tx.gas_price = u128::from(block.base_fee);
        ctx.tx.kind = TxKind::Call(tx.to);
        ctx.tx.data = tx.input;
    }

    fn end(&mut self, end: Result<ExecutionResult, Error>) -> Run {
        let ctx = &mut self.evm.ctx;
        // The next run reads the state anew; the room is kept.
        ctx.journaled_state.inner.state.clear();
        ctx.error = Ok(());
        Run {
            end,
            missing: ctx.db_mut().end(),
        }
    }
}

/// Executes as on the main net, without payment.
struct Unpaid;

impl Handler for Unpaid {
    type Evm = Machine;
    type Error = Error;
    type HaltReason = HaltReason;

    fn validate_env(&self, _: &mut Machine) -> Result<(), Error> {
        Ok(())
    }

    fn validate_against_state_and_deduct_caller(
        &self,
        _: &mut Machine,
        _: &mut InitialAndFloorGas,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn load_accounts(&self, evm: &mut Machine) -> Result<(), Error> {
        pre_execution::load_accounts::<_, Error>(evm)?;
        // The sender is warm (EIP-2929) without being read.
        let mut sender = AddressMap::default();
        sender.insert(evm.ctx.tx.caller, HashSet::default());
        evm.ctx.journaled_state.warm_access_list(sender);
        Ok(())
    }

    fn reimburse_caller(
        &self,
        _: &mut Machine,
        _: &mut revm::handler::FrameResult,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn reward_beneficiary(
        &self,
        _: &mut Machine,
        _: &mut revm::handler::FrameResult,
    ) -> Result<(), Error> {
        Ok(())
    }
}

impl InspectorHandler for Unpaid {
    type IT = EthInterpreter;
}

type Step<'a> = InstructionContext<'a, Ctx, EthInterpreter>;

/// Sets the instructions that make use of a balance or a nonce to say so first. Their static gas stays.
fn note_uses_of_funds(instructions: &mut EthInstructions<EthInterpreter, Ctx>) {
    let steps: [(u8, Instruction<EthInterpreter, Ctx>); 8] = [
        (
            opcode::BALANCE,
            Instruction::new(|step| of_operand(step, 0, host::balance)),
        ),
        (
            opcode::EXTCODEHASH,
            Instruction::new(|step| of_operand(step, 0, host::extcodehash)),
        ),
        (
            opcode::SELFBALANCE,
            Instruction::new(|step| of_self(step, host::selfbalance)),
        ),
        (
            opcode::CREATE,
            Instruction::new(|step| of_self(step, contract::create::<false, _, _>)),
        ),
        (
            opcode::CREATE2,
            Instruction::new(|step| of_self(step, contract::create::<true, _, _>)),
        ),
        (
            opcode::CALL,
            Instruction::new(|step| of_payment(step, contract::call::<{ opcode::CALL }, _, _>)),
        ),
        (
            opcode::CALLCODE,
            Instruction::new(|step| of_payment(step, contract::call::<{ opcode::CALLCODE }, _, _>)),
        ),
        (
            opcode::SELFDESTRUCT,
            Instruction::new(|mut step| {
                note_operand(&mut step, 0);
                of_self(step, host::selfdestruct)
            }),
        ),
    ];
    for (code, step) in steps {
        let gas = instructions
            .gas_table()
            .get(usize::from(code))
            .copied()
            .unwrap_or_default();
        instructions.insert_instruction(code, step, gas);
    }
}

type Do = fn(Step<'_>) -> InstructionExecResult;

fn note_operand(step: &mut Step<'_>, from_top: usize) {
    if let Ok(word) = step.interpreter.stack.peek(from_top) {
        let address = Address::from_word(word.into());
        step.host.db_mut().uses_funds(address);
    }
}

fn of_operand(mut step: Step<'_>, from_top: usize, then: Do) -> InstructionExecResult {
    note_operand(&mut step, from_top);
    then(step)
}

fn of_self(step: Step<'_>, then: Do) -> InstructionExecResult {
    let address = step.interpreter.input.target_address;
    step.host.db_mut().uses_funds(address);
    then(step)
}

/// A call that carries money moves it from the caller to the operand below the gas.
fn of_payment(mut step: Step<'_>, then: Do) -> InstructionExecResult {
    if step
        .interpreter
        .stack
        .peek(2)
        .is_ok_and(|value| !value.is_zero())
    {
        note_operand(&mut step, 1);
        return of_self(step, then);
    }
    then(step)
}
