package core

import "math/bits"

// memoryBlocks holds the states that have no fixed size, in blocks of 2^class
// words. Blocks are cut from chunks that never move, and used again when freed.
type memoryBlocks struct {
	classes [maxBlockClass + 1]blockClass
}

type blockClass struct {
	chunks [][]uint64
	fresh  int      // blocks cut so far
	freed  []uint32 // blocks to use again
}

const (
	minBlockClass = 3  // 8 words
	maxBlockClass = 14 // 16,384 words: MaxLogQuota hits, or MaxBuckets buckets
	chunkClass    = 9  // a chunk has 512 words, or one block where that is longer
)

func blocksPerChunk(class int) int { return 1 << max(0, chunkClass-class) }

// allocate returns a reference to a zeroed block of at least n words.
func (b *memoryBlocks) allocate(n int) uint64 {
	class := max(minBlockClass, bits.Len(uint(n-1)))
	c := &b.classes[class]
	if last := len(c.freed) - 1; last >= 0 {
		i := c.freed[last]
		c.freed = c.freed[:last]
		ref := blockRef(class, int(i))
		clear(b.get(ref))
		return ref
	}
	per := blocksPerChunk(class)
	if c.fresh == len(c.chunks)*per {
		c.chunks = append(c.chunks, make([]uint64, per<<class))
	}
	c.fresh++
	return blockRef(class, c.fresh-1)
}

// blockRef is never 0, which refers to no block.
func blockRef(class, i int) uint64 { return uint64(class)<<32 | uint64(i) }

// get returns a block, nil for the reference 0.
func (b *memoryBlocks) get(ref uint64) []uint64 {
	if ref == 0 {
		return nil
	}
	class, i := int(ref>>32), int(uint32(ref))
	per := blocksPerChunk(class)
	start := (i % per) << class
	return b.classes[class].chunks[i/per][start : start+1<<class : start+1<<class]
}

func (b *memoryBlocks) free(ref uint64) {
	if ref == 0 {
		return
	}
	c := &b.classes[ref>>32]
	c.freed = append(c.freed, uint32(ref))
	if len(c.freed) == c.fresh { // none in use: give the memory back
		*c = blockClass{}
	}
}
