package core

import (
	"crypto/sha256"
	"encoding/base64"
)

// StoredKey returns the name under which a shared store keeps the counters of
// the deciding rule for this key: see [StoreRule.StoredKey]. It is "" if no rule
// applied.
func (d Decision) StoredKey() string {
	if d.Rule == "" {
		return ""
	}
	it := d.decidingItem()
	key := []byte(it.key)
	if it.raw {
		key = closeKey(key, 0, "")
	}
	return StoreRule{Name: d.Rule}.StoredKey(d.Limiter, key)
}

// StoredKey returns the name under which a store outside the process keeps the
// counters of a key of the rule, for a limiter of this name. Of the rule, only
// its Name counts. The name is "fg1", the names of the limiter and the rule, and
// 128 bits of the key's SHA-256 as base64url (RFC 4648, section 5), with ":"
// between them. Two keys, rules or limiters have the same name only if the hashes
// collide. A name does not show what a client sent. It has at most 156 of the
// characters 0-9 A-Z a-z : _ . -
// Names change only with a major version.
//
// key is as in [Item]: the Key of a [Hit] followed by a zero byte.
func (r StoreRule) StoredKey(limiter string, key []byte) string {
	sum := sha256.Sum256(key)
	buf := make([]byte, 0, 160)
	buf = append(buf, "fg1:"...)
	buf = append(buf, limiter...)
	buf = append(buf, ':')
	buf = append(buf, r.Name...)
	buf = append(buf, ':')
	return string(base64.RawURLEncoding.AppendEncode(buf, sum[:16]))
}
