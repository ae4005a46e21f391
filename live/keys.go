package live

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/floodgate-go/floodgate/live/internal/sketch"
)

const shownKeys = 20 // of each list

// seenKey is a key on the page.
type seenKey struct {
	// ID stands for the key in an action: it is the keyed hash of rule and key.
	ID    string `json:"id"`
	Rule  string `json:"rule"`
	Label string `json:"label"`
	Cut   bool   `json:"cut,omitempty"` // too long to be kept whole: ID is of no use
	// Count is how often the key was denied for certain: Over more is possible. Both are
	// halved each minute.
	Count    uint64 `json:"count"`
	Over     uint64 `json:"over,omitempty"`
	Used     int64  `json:"used,omitempty"` // hits of Capacity
	Capacity int64  `json:"capacity,omitempty"`
	Ago      int64  `json:"ago"` // seconds
}

// id returns the keyed hash of a key.
func (p *Page) id(k sketch.Key) string {
	h := hmac.New(sha256.New, p.config.Secret)
	var length [4]byte
	for _, part := range []string{k.Rule, k.Key, k.Extra} {
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		_, _ = h.Write(length[:])
		_, _ = h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func (p *Page) seen(l *limiter, c sketch.Counted, second int64) seenKey {
	k := seenKey{
		ID: p.id(c.Key), Rule: c.Rule, Cut: c.Cut, Count: c.Count - c.Over, Over: c.Over,
		Used: c.Note.Used, Capacity: c.Note.Capacity, Ago: max(0, second-c.Note.Second),
	}
	if p.config.ShowKey != nil {
		k.Label = p.config.ShowKey(l.name, c.Rule, c.Key.Key)
	}
	if k.Label == "" {
		k.Label = "#" + k.ID[:10]
	}
	return k
}

// deniedMost returns the keys that were denied most often of late.
func (p *Page) deniedMost(l *limiter, second int64) []seenKey {
	keys := make([]seenKey, 0, shownKeys)
	for _, c := range l.denied.Top(shownKeys) {
		keys = append(keys, p.seen(l, c, second))
	}
	return keys
}

// nearest returns the keys that have used most of their limit in the last minute.
func (p *Page) nearest(l *limiter, second int64) []seenKey {
	all := slices.DeleteFunc(l.near.Top(nearKeys), func(c sketch.Counted) bool { return second-c.Note.Second > 60 })
	share := func(n sketch.Note) float64 { return float64(n.Used) / float64(n.Capacity) }
	slices.SortStableFunc(all, func(a, b sketch.Counted) int { return cmp.Compare(share(b.Note), share(a.Note)) })
	keys := make([]seenKey, 0, shownKeys)
	for _, c := range all[:min(shownKeys, len(all))] {
		keys = append(keys, p.seen(l, c, second))
	}
	return keys
}

// keyOf returns the key that an id stands for, as long as the page keeps it.
func (p *Page) keyOf(l *limiter, id string) (k sketch.Key, ok bool) {
	for _, s := range []*sketch.Sketch{l.denied, l.near} {
		for _, c := range s.Top(deniedKeys) {
			if !c.Cut && p.id(c.Key) == id {
				return c.Key, true
			}
		}
	}
	return sketch.Key{}, false
}
