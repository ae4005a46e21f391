package keyfuncs

import (
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

const (
	maxHops       = 32
	maxWalkLength = 4 << 10
)

// walkKey returns the key function for a header that lists hops, separated by commas. The
// last hop is on the right. lastComma returns the index of the last comma of a line that
// separates hops, or -1. parse returns the address of a hop; ok is false if it has none.
func (c *clientIP) walkKey(lastComma func(line string) int, parse func(hop string) (a netip.Addr, ok bool)) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		a := c.peer(r)
		peer := a
		if !c.vouches(a, 0) {
			c.ignore(r)
			return c.appendKey(dst, a), nil
		}
		lines := r.HeaderValues(c.header)
		if len(lines) == 0 {
			c.fallBack(r, errHeaderMissing)
			return c.appendKey(dst, a), nil
		}
		hops, length := 0, 0
		for i := len(lines) - 1; i >= 0; i-- {
			line := lines[i]
			over := length + len(line) - maxWalkLength
			cut := over > 0
			if cut {
				line = line[min(over, len(line)):]
			}
			length += len(line)
			for line != "" {
				comma := lastComma(line)
				part := trimSpace(line[comma+1:])
				line = line[:max(comma, 0)]
				if cut && line == "" { // part may be a part of a hop
					break
				}
				if part == "" {
					continue
				}
				hop, ok := parse(part)
				if hops++; !ok || hops > maxHops {
					why := errHeaderBad
					if ok {
						why = errHeaderLong
					}
					c.fallBack(r, why)
					return c.appendKey(dst, a), nil
				}
				if a = hop; !c.vouches(a, hops) {
					return c.appendKey(dst, a), nil
				}
			}
			if cut {
				c.fallBack(r, errHeaderLong)
				return c.appendKey(dst, a), nil
			}
		}
		switch {
		case hops == 0:
			c.fallBack(r, errHeaderMissing)
		case hops < c.hops:
			c.fallBack(r, errHeaderShort)
			a = peer
		}
		return c.appendKey(dst, a), nil
	}
}

// lastComma returns the index of the last comma of a line of X-Forwarded-For, or -1.
func lastComma(line string) int { return strings.LastIndexByte(line, ',') }
