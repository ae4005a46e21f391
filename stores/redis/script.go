package redisstore

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by SHA-1; nothing is trusted for it
	"embed"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// The script is one text of several files, in the order of their names.
//
//go:embed script/*.lua
var files embed.FS

var script = func() string {
	var b strings.Builder
	names, err := fs.Glob(files, "script/*.lua") // sorted
	for _, name := range names {
		var text []byte
		if text, err = files.ReadFile(name); err != nil {
			break
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	if err != nil {
		panic(err) // what is embedded can be read
	}
	return b.String()
}()

// What the script is asked with, boxed once: see script/1_arguments.lua for the meaning.
var (
	evalsha   any = "evalsha"
	eval      any = "eval"
	scriptArg any = script
	scriptSHA any = func() string {
		sum := sha1.Sum([]byte(script)) //nolint:gosec // as above
		return hex.EncodeToString(sum[:])
	}()

	verbTake   any = "take"
	verbPeek   any = "peek"
	verbBack   any = "back"
	verbRefund any = "refund"
	verbReset  any = "reset"

	serverTime any = ""
)

// kindLockout is what the script calls a fixed window with a lockout.
const kindLockout = 5

// encodeLimits writes a rule's limits as the script reads them. deny says that a
// value that cannot be read denies its key.
func encodeLimits(limits []core.Limit, deny bool) string {
	b := make([]byte, 0, 21*len(limits)+1)
	for _, l := range limits {
		lockout := l.Lockout != core.Lockout{}
		kind, precision := byte(l.Algorithm)<<1, l.Precision
		switch {
		case lockout:
			kind, precision = kindLockout<<1, l.Lockout.First
		case l.Aligned:
			kind |= 1
		}
		b = append(b, kind)
		b = appendUint48(b, l.Window.Microseconds())
		b = appendUint48(b, precision.Microseconds())
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Quota))
		b = binary.LittleEndian.AppendUint32(b, uint32(capacity(l)))
		if lockout {
			b = binary.LittleEndian.AppendUint32(b, uint32(l.Lockout.Factor))
			b = appendUint48(b, l.Lockout.Max.Microseconds())
			b = appendUint48(b, l.Lockout.Decay.Microseconds())
		}
	}
	if deny {
		b = append(b, 1)
	}
	return string(b)
}

func appendUint48(b []byte, n int64) []byte {
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40))
}

// capacity is the most hits that can be taken at once.
func capacity(l core.Limit) int64 {
	if l.Algorithm == core.TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Quota
}
