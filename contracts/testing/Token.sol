// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.20;

/// The ERC-20 that the lab puts at every token's address.
///
/// It has no constructor: the lab writes code and storage directly. The order of the state variables is therefore
/// part of its interface (`tests/chain-lab/src/token.rs` names the same slots):
/// 0 `balanceOf`, 1 `allowance`, 2 `totalSupply`, 3 `symbol` (at most 31 bytes), 4 `decimals` in the lowest byte
/// and above it `taxBps` in two bytes.
///
/// A token can lie in two ways that real ones have: it keeps a part of each transfer (`taxBps`), and it takes from a
/// holder without a transfer (`deflate`), which is how deflating tokens emptied pairs.
contract Token {
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    uint256 public totalSupply;
    string public symbol;
    uint8 public decimals;
    /// Of each transfer, so many parts in 10,000 are burnt on the way. At most 10,000.
    uint16 public taxBps;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error TooLittle(uint256 has, uint256 wanted);
    error TaxTooHigh(uint16 bps);

    function name() external view returns (string memory) {
        return symbol;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) {
            if (allowed < value) revert TooLittle(allowed, value);
            allowance[from][msg.sender] = allowed - value;
        }
        move(from, to, value);
        return true;
    }

    /// Takes `value` from `holder`, who is not asked.
    function deflate(address holder, uint256 value) external {
        uint256 has = balanceOf[holder];
        if (has < value) revert TooLittle(has, value);
        balanceOf[holder] = has - value;
        emit Transfer(holder, address(0), value);
    }

    /// Sets the tax. Anybody may: this is a test's token.
    function setTax(uint16 bps) external {
        if (bps > 10_000) revert TaxTooHigh(bps);
        taxBps = bps;
    }

    function move(address from, address to, uint256 value) private {
        uint256 has = balanceOf[from];
        if (has < value) revert TooLittle(has, value);
        // Rounded down, and split so that no value can overflow the product.
        uint256 tax = (value / 10_000) * taxBps + ((value % 10_000) * taxBps) / 10_000;
        balanceOf[from] = has - value;
        balanceOf[to] += value - tax;
        emit Transfer(from, to, value - tax);
        if (tax != 0) emit Transfer(from, address(0), tax);
    }
}
