package memtable

import "math/bits"

// blocks holds the states that have no fixed size, in blocks of 2^class
// words. Blocks are cut from chunks that never move. A chunk without a block in
// use gives its memory back.
type blocks struct {
	classes [maxBlockClass + 1]blockClass
}

type blockClass struct {
	chunks []blockChunk
	spare  []uint32 // chunks that may have a free block, each once
	used   int      // blocks in use
}

type blockChunk struct {
	words []uint64 // nil if no block is in use
	free  uint64   // one bit for each free block
	spare bool     // the chunk is in the list of that name
}

const (
	minBlockClass = 3  // 8 words
	maxBlockClass = 14 // 16,384 words: the longest log
	chunkClass    = 9  // a chunk has 512 words, or one block if that is longer
)

func blocksPerChunk(class int) int { return 1 << max(0, chunkClass-class) }

func allFree(class int) uint64 { return ^uint64(0) >> (64 - blocksPerChunk(class)) }

// allocate returns a reference to a zeroed block of at least n words.
func (b *blocks) allocate(n int) uint64 {
	class := blockClassOf(n)
	c := &b.classes[class]
	i := c.spareChunk(class)
	chunk := &c.chunks[i]
	if chunk.words == nil {
		chunk.words = make([]uint64, blocksPerChunk(class)<<class)
	}
	block := bits.TrailingZeros64(chunk.free)
	chunk.free &^= 1 << block
	c.used++
	clear(chunk.words[block<<class : (block+1)<<class])
	return blockRef(class, i*blocksPerChunk(class)+block)
}

// blockClassOf returns the class of the blocks for n words.
func blockClassOf(n int) int { return max(minBlockClass, bits.Len(uint(n-1))) }

// spareChunk returns a chunk that has a free block.
func (c *blockClass) spareChunk(class int) int {
	for len(c.spare) > 0 {
		last := len(c.spare) - 1
		i := int(c.spare[last])
		if c.chunks[i].free != 0 {
			return i
		}
		c.chunks[i].spare = false
		c.spare = c.spare[:last]
	}
	i := len(c.chunks)
	c.chunks = append(c.chunks, blockChunk{free: allFree(class), spare: true})
	c.spare = append(c.spare, uint32(i))
	return i
}

// blockRef is never 0, which refers to no block.
func blockRef(class, i int) uint64 { return uint64(class)<<32 | uint64(i) }

// get returns a block, nil for the reference 0.
func (b *blocks) get(ref uint64) []uint64 {
	if ref == 0 {
		return nil
	}
	class, i := int(ref>>32), int(uint32(ref))
	shift := max(0, chunkClass-class) // a shift is quicker than a division by blocksPerChunk
	start := (i & (1<<shift - 1)) << (class & 63)
	return b.classes[class].chunks[i>>shift].words[start : start+1<<(class&63) : start+1<<(class&63)]
}

func (b *blocks) free(ref uint64) {
	if ref == 0 {
		return
	}
	class, i := int(ref>>32), int(uint32(ref))
	c, per := &b.classes[class], blocksPerChunk(class)
	chunk := &c.chunks[i/per]
	chunk.free |= 1 << (i % per)
	if chunk.free == allFree(class) {
		chunk.words = nil
	}
	if !chunk.spare {
		chunk.spare = true
		c.spare = append(c.spare, uint32(i/per))
	}
	if c.used--; c.used == 0 {
		*c = blockClass{}
	}
}
