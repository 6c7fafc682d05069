//! What an ELF file says about how it was linked: whether a loader has a part in it, and its symbols.
//!
//! Only what `no-std` asks of a 64-bit little-endian file; the layout is that of the System V ABI, chapter 4
//! and 5.

/// What was read from a file.
pub(crate) struct Elf {
    /// Whether it has a dynamic segment or names an interpreter: then it is not linked statically.
    pub(crate) dynamic: bool,
    /// The names in its symbol table.
    pub(crate) symbols: Vec<Symbol>,
}

/// One entry of the symbol table.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Symbol {
    /// As the linker knows it.
    pub(crate) name: String,
    /// Whether the file has it, rather than needs it.
    pub(crate) defined: bool,
}

const SHT_SYMTAB: u32 = 2;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;

/// Bytes of one entry of the symbol table.
const SYMBOL_SIZE: usize = 24;

impl Elf {
    /// Reads a file; `None` if it is cut short, or no 64-bit little-endian ELF file with a symbol table.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let file = Bytes(bytes);
        // Magic, 64 bits, little-endian.
        if bytes.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let segments = file.table(0x20, 0x36)?;
        let sections = file.table(0x28, 0x3a)?;
        let mut dynamic = false;
        for segment in &segments {
            dynamic |= matches!(segment.u32(0)?, PT_DYNAMIC | PT_INTERP);
        }
        let mut symbols = None;
        for section in &sections {
            if section.u32(4)? == SHT_SYMTAB {
                let names = sections.get(section.u32(0x28)? as usize)?;
                symbols = Some(symbol_table(
                    file.section(*section)?,
                    file.section(*names)?,
                )?);
            }
        }
        Some(Self {
            dynamic,
            symbols: symbols?,
        })
    }

    /// The symbols with one of `words` in their name.
    pub(crate) fn naming<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = &'a Symbol> {
        let names = move |symbol: &&Symbol| words.iter().any(|word| symbol.name.contains(word));
        self.symbols.iter().filter(names)
    }
}

fn symbol_table(table: Bytes<'_>, names: Bytes<'_>) -> Option<Vec<Symbol>> {
    let entries = table.0.chunks_exact(SYMBOL_SIZE).map(Bytes);
    // The first entry is no symbol.
    let symbols = entries.skip(1).map(|entry| {
        let name = names.0.get(entry.u32(0)? as usize..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        Some(Symbol {
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
            defined: entry.u16(6)? != 0,
        })
    });
    symbols.collect()
}

/// A piece of the file.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: usize) -> Option<usize> {
        usize::try_from(self.array(at).map(u64::from_le_bytes)?).ok()
    }

    fn slice(self, at: usize, len: usize) -> Option<Self> {
        self.0.get(at..at.checked_add(len)?).map(Self)
    }

    /// The rows of a header table: its offset stands at `offset`, the size and number of its rows at
    /// `sizes`.
    fn table(self, offset: usize, sizes: usize) -> Option<Vec<Self>> {
        let start = self.u64(offset)?;
        let size = usize::from(self.u16(sizes)?);
        let rows = 0..usize::from(self.u16(sizes + 2)?);
        rows.map(|row| self.slice(start + row * size, size))
            .collect()
    }

    /// The content of the section whose header is `header`.
    fn section(self, header: Self) -> Option<Bytes<'a>> {
        self.slice(header.u64(0x18)?, header.u64(0x20)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This very test binary: linked dynamically, with an allocator.
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn a_program_with_a_loader_and_an_allocator_is_seen_as_one() {
        let elf = Elf::parse(&own()).unwrap();
        assert!(elf.dynamic);
        assert!(elf.naming(&["__rust_alloc"]).next().is_some());
        let needed = elf.naming(&["malloc"]).find(|symbol| !symbol.defined);
        assert!(needed.is_some(), "the C library has it");
        assert!(elf.naming(&["no such symbol"]).next().is_none());
    }

    #[test]
    fn what_is_no_such_file_is_refused_and_does_not_panic() {
        let whole = own();
        for cut in [0, 5, 6, 0x30, 0x40, 1000, whole.len() / 2] {
            assert!(Elf::parse(&whole[..cut]).is_none(), "{cut}");
        }
        assert!(Elf::parse(&[0; 4096]).is_none());
    }
}
