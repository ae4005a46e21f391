package keyfuncs

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"github.com/floodgate-go/floodgate/core"
)

// Join returns a key function for the keys of several key functions together. Requests
// share a quota only if all their keys are equal. The key contains the length of each
// part, so that different parts never give the same key. If one of the functions returns
// an error, such as [core.SkipRule], Join's key function returns it. To use OrSkip, apply
// it to the functions and not to Join: the key of Join is never empty. [JoinKeys] and
// [SplitKeys] are for its keys. Join panics if fs is empty or one of fs is nil.
func Join(fs ...core.KeyFunc) core.KeyFunc {
	fs = slices.Clone(fs)
	mustHave("Join", "no key functions: write one or more, such as keyfuncs.ClientIP()", len(fs) > 0)
	for _, f := range fs {
		mustHave("Join", "a key function is nil: write one such as keyfuncs.ClientIP()", f != nil)
	}
	return func(dst []byte, r core.Request) ([]byte, error) {
		for _, f := range fs {
			from := len(dst)
			var err error
			if dst, err = f(dst, r); err != nil {
				return dst, err
			}
			dst = appendLength(dst, len(dst)-from)
		}
		return dst, nil
	}
}

// lengthBytes is how many bytes the length of a part has.
const lengthBytes = 4

// appendLength appends the length of a part. The lengths follow the parts: a reader that
// begins at the end of the key can split it in one way only.
func appendLength(dst []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(length))
}

// JoinKeys returns the key that [Join] makes of these keys. It is for programs that name the
// counter of such a rule, such as with [core.Limiter.Reset] or [core.Limiter.Grant]:
//
//	err := limiter.Reset(ctx, core.Hit{Rule: "login", Key: keyfuncs.JoinKeys("192.0.2.1", "alice")})
//
// Each key is written as its key function writes it: [ClientIP] writes an IPv6 address as a
// prefix, such as "2001:db8::/64". JoinKeys may be called concurrently.
func JoinKeys(keys ...string) string {
	size := 0
	for _, key := range keys {
		size += len(key) + lengthBytes
	}
	joined := make([]byte, 0, size)
	for _, key := range keys {
		joined = appendLength(append(joined, key...), len(key))
	}
	return string(joined)
}

// SplitKeys returns the keys of which [Join] has made this one, in the order of Join's key
// functions. It returns nil if Join makes no such key. It is for logs and for pages that show keys:
//
//	strings.Join(keyfuncs.SplitKeys(key), " ")
//
// Clients choose parts of keys: a key of another rule may look like one of Join. Split only the
// keys of rules whose key function is Join, and of the rules "address-account" and "device" of a
// login guard. SplitKeys may be called concurrently.
func SplitKeys(joined string) (keys []string) {
	for rest := joined; rest != ""; {
		end := len(rest) - lengthBytes
		if end < 0 {
			return nil
		}
		length := binary.BigEndian.Uint32([]byte(rest[end:]))
		if uint64(length) > uint64(end) {
			return nil
		}
		from := end - int(length)
		keys = append(keys, rest[from:end])
		rest = rest[:from]
	}
	slices.Reverse(keys)
	return keys
}

// FirstOf returns a key function for the first key of several key functions that is not
// empty. The same key of two functions has two counters: the user "192.0.2.1" and the
// address 192.0.2.1 do not share a quota.
//
//	keyfuncs.FirstOf(keyfuncs.User(currentUser), keyfuncs.ClientIP())
//
// If all keys are empty, the key is empty. If all functions return [core.SkipRule], the
// error is SkipRule. If a function returns any other error, FirstOf's key function
// returns it and does not call the functions after it. FirstOf panics if fs is empty or
// one of fs is nil.
func FirstOf(fs ...core.KeyFunc) core.KeyFunc {
	fs = slices.Clone(fs)
	mustHave("FirstOf", "no key functions: write one or more, such as keyfuncs.ClientIP()", len(fs) > 0)
	for _, f := range fs {
		mustHave("FirstOf", "a key function is nil: write one such as keyfuncs.ClientIP()", f != nil)
	}
	return func(dst []byte, r core.Request) ([]byte, error) {
		start, skipped := len(dst), 0
		for i, f := range fs {
			dst = append(strconv.AppendInt(dst[:start], int64(i+1), 10), ':')
			from := len(dst)
			var err error
			dst, err = f(dst, r)
			switch {
			case errors.Is(err, core.SkipRule):
				skipped++
			case err != nil || len(dst) > from:
				return dst, err
			}
		}
		if skipped == len(fs) {
			return dst[:start], core.SkipRule
		}
		return dst[:start], nil
	}
}
