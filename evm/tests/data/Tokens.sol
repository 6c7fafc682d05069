// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

// Tokens and a pair for the tests: each does one thing that real ones do. Code is put in place without a
// constructor, so the order of the state variables is part of what the tests know.

/// Slot 0: `balanceOf`.
contract Plain {
    mapping(address => uint256) public balanceOf;
    event Transfer(address indexed from, address indexed to, uint256 value);

    function transfer(address to, uint256 value) external virtual returns (bool) {
        _move(msg.sender, to, value, value);
        return true;
    }

    function _move(address from, address to, uint256 value, uint256 arriving) internal {
        uint256 has = balanceOf[from];
        require(has >= value, "too little");
        unchecked {
            balanceOf[from] = has - value;
            balanceOf[to] += arriving;
        }
        emit Transfer(from, to, arriving);
    }
}

/// Keeps one part in a hundred of each transfer, and at least 1.
contract Taxed is Plain {
    function transfer(address to, uint256 value) external override returns (bool) {
        _move(msg.sender, to, value, value - value / 100 - 1);
        return true;
    }
}

/// Answers nothing to a transfer.
contract Silent {
    mapping(address => uint256) public balanceOf;

    function transfer(address to, uint256 value) external {
        require(balanceOf[msg.sender] >= value, "too little");
        unchecked {
            balanceOf[msg.sender] -= value;
            balanceOf[to] += value;
        }
    }
}

/// Refuses every transfer, with a text that is long and not fit for printing.
contract Refusing is Plain {
    function transfer(address, uint256) external pure override returns (bool) {
        revert("\x1b[2Jno, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no");
    }
}

/// Answers false to every transfer.
contract Declining is Plain {
    function transfer(address, uint256) external pure override returns (bool) {
        return false;
    }
}

/// Never ends a transfer.
contract Looping is Plain {
    function transfer(address, uint256) external pure override returns (bool) {
        for (;;) {}
    }
}

/// Says that a holder has half of what it has. Slot 0: what it has.
contract Lying {
    mapping(address => uint256) private _balances;

    function balanceOf(address holder) external view returns (uint256) {
        return _balances[holder] / 2;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        require(_balances[msg.sender] >= value, "too little");
        unchecked {
            _balances[msg.sender] -= value;
            _balances[to] += value;
        }
        return true;
    }
}

/// Lets transfers through while its own account has seven wei.
contract Curious is Plain {
    function transfer(address to, uint256 value) external override returns (bool) {
        require(address(this).balance == 7, "seven wei");
        _move(msg.sender, to, value, value);
        return true;
    }
}

/// Asks for the hash of the block before.
contract Hashing is Plain {
    function transfer(address to, uint256 value) external override returns (bool) {
        require(blockhash(block.number - 1) != 0, "no hash");
        _move(msg.sender, to, value, value);
        return true;
    }
}

/// Sends each call on to the address in slot 0, as proxies do. The balances are this account's, in slot 1.
contract Proxy {
    address private _implementation;

    fallback() external {
        address implementation = _implementation;
        assembly ("memory-safe") {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), implementation, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if done { return(0, returndatasize()) }
            revert(0, returndatasize())
        }
    }
}

/// What a `Proxy` sends its calls on to.
contract Behind {
    address private _implementation;
    mapping(address => uint256) public balanceOf;

    function transfer(address to, uint256 value) external returns (bool) {
        require(balanceOf[msg.sender] >= value, "too little");
        unchecked {
            balanceOf[msg.sender] -= value;
            balanceOf[to] += value;
        }
        return true;
    }
}

interface IToken {
    function balanceOf(address holder) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
}

/// Swaps as `UniswapV2Pair` does, over the same slots, and takes 25 parts in 10,000 where that takes 30.
contract Pair25 {
    uint256[6] private _unused;
    address public token0;
    address public token1;
    uint112 private _reserve0;
    uint112 private _reserve1;
    uint32 private _updated;

    function swap(uint256 out0, uint256 out1, address to, bytes calldata) external {
        if (out0 > 0) IToken(token0).transfer(to, out0);
        if (out1 > 0) IToken(token1).transfer(to, out1);
        uint256 left0 = IToken(token0).balanceOf(address(this));
        uint256 left1 = IToken(token1).balanceOf(address(this));
        uint256 in0 = left0 > _reserve0 - out0 ? left0 - (_reserve0 - out0) : 0;
        uint256 in1 = left1 > _reserve1 - out1 ? left1 - (_reserve1 - out1) : 0;
        uint256 after0 = left0 * 10000 - in0 * 25;
        uint256 after1 = left1 * 10000 - in1 * 25;
        require(after0 * after1 >= uint256(_reserve0) * _reserve1 * 10000 ** 2, "UniswapV2: K");
        (_reserve0, _reserve1, _updated) = (uint112(left0), uint112(left1), uint32(block.timestamp));
    }
}
