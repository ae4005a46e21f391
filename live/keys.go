package live

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"runtime/debug"
	"slices"

	"github.com/floodgate-go/floodgate/live/internal/sketch"
)

const shownKeys = 20 // of each list

// seenKey is a key on the page.
type seenKey struct {
	// ID stands for the key in an action: it is the keyed hash of limiter, rule and key.
	ID    string `json:"id"`
	Rule  string `json:"rule"`
	Label string `json:"label"`
	Cut   bool   `json:"cut,omitempty"` // too long to be kept: no action knows it
	// Count is how often the key was denied for certain: Over more is possible.
	Count uint64  `json:"count"`
	Over  uint64  `json:"over,omitempty"`
	Used  float64 `json:"used,omitempty"` // the share of the limit, 0 to 1
	Ago   int64   `json:"ago"`            // seconds
}

// id returns the keyed hash of a key.
func (p *Page) id(limiter, rule string, k sketch.Key) string {
	h := hmac.New(sha256.New, p.config.Secret)
	var length [4]byte
	for _, part := range []string{limiter, rule, k.Key, k.Extra} {
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		_, _ = h.Write(length[:])
		_, _ = h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func (p *Page) seen(l *limiter, names []string, c sketch.Counted, ago int64) seenKey {
	rule := names[c.Group]
	k := seenKey{ID: p.id(l.name, rule, c.Key), Rule: rule, Cut: c.Cut, Count: c.Count - c.Over, Over: c.Over, Ago: max(0, ago)}
	if p.config.ShowKey != nil {
		k.Label = p.show(l.name, rule, c.Key.Key)
	}
	if k.Label == "" {
		k.Label = "#" + k.ID[:10]
	}
	return k
}

// show returns what ShowKey does, or "" if it panics. The first panic is logged, with its
// stack: the others would be one for each key and second.
func (p *Page) show(limiter, rule, key string) (text string) {
	defer func() {
		if v := recover(); v != nil && p.panicked.CompareAndSwap(false, true) {
			p.config.Log.Error("live: ShowKey panicked; the page shows a hash of the key, and further panics are not logged",
				"limiter", limiter, "rule", rule, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	return p.config.ShowKey(limiter, rule, key)
}

// deniedMost returns the keys that were denied most often of late.
func (p *Page) deniedMost(l *limiter, second int64) []seenKey {
	top := l.denied.Top(shownKeys)
	keys, names := make([]seenKey, 0, shownKeys), l.names()
	for _, c := range top {
		keys = append(keys, p.seen(l, names, c, second-int64(c.Note)))
	}
	return keys
}

// nearest returns the keys that have used most of their limit in the last minute.
func (p *Page) nearest(l *limiter, second int64) []seenKey {
	all := slices.DeleteFunc(l.near.Top(nearKeys), func(c sketch.Counted) bool { return second-int64(c.Note>>16) > 60 })
	slices.SortStableFunc(all, func(a, b sketch.Counted) int { return int(b.Note&(1<<16-1)) - int(a.Note&(1<<16-1)) })
	keys, names := make([]seenKey, 0, shownKeys), l.names()
	for _, c := range all[:min(shownKeys, len(all))] {
		k := p.seen(l, names, c, second-int64(c.Note>>16))
		k.Used = float64(c.Note&(1<<16-1)) / (1<<16 - 1)
		keys = append(keys, k)
	}
	return keys
}

// keyOf returns the key that an id stands for, as long as the page keeps it.
func (p *Page) keyOf(l *limiter, id string) (rule string, k sketch.Key, ok bool) {
	for _, s := range []*sketch.Sketch{l.denied.Sketch, l.near.Sketch} {
		top := s.Top(deniedKeys)
		names := l.names()
		for _, c := range top {
			if !c.Cut && hmac.Equal([]byte(p.id(l.name, names[c.Group], c.Key)), []byte(id)) {
				return names[c.Group], c.Key, true
			}
		}
	}
	return "", sketch.Key{}, false
}
