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

// hopReader reads the last hop of a line of a header. rest is the text before the hop, a
// the hop's address. ok is false if the hop is not an address. found is false if the part
// is empty.
type hopReader func(line string) (rest string, a netip.Addr, ok, found bool)

// walkKey returns the key function for a header that lists hops. The last hop is on the
// right.
func (c *clientIP) walkKey(last hopReader) core.KeyFunc {
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
			line, cut := lines[i], false
			if over := length + len(line) - maxWalkLength; over > 0 {
				if over >= len(line) {
					line = ""
				} else {
					line = line[over:]
				}
				cut = true
			}
			length += len(line)
			for line != "" {
				rest, hop, ok, found := last(line)
				if cut && rest == "" { // it may be a part of a hop
					break
				}
				line = rest
				if !found {
					continue
				}
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

// forwardedFor is a hopReader for X-Forwarded-For: commas separate its addresses.
func forwardedFor(line string) (rest string, a netip.Addr, ok, found bool) {
	comma := strings.LastIndexByte(line, ',')
	part := trimSpace(line[comma+1:])
	if comma > 0 {
		rest = line[:comma]
	}
	if part == "" {
		return rest, a, false, false
	}
	a, ok = parseHop(part)
	return rest, a, ok, true
}
