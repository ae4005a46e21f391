package redisstore

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by SHA-1; nothing is trusted for it
	"embed"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

//go:embed script/*.lua
var files embed.FS

// scriptFiles are the files that make up the script, in this order: each uses
// what those before it define. internal/luamutants reads this list, too.
var scriptFiles = []string{
	"arguments.lua",
	"meter.lua",
	"quota.lua",
	"cell.lua",
	"fixed_window.lua",
	"sliding_window.lua",
	"bucketed_window.lua",
	"sliding_log.lua",
	"token_bucket.lua",
	"lockout.lua",
	"calendar_window.lua",
	"in_flight.lua",
	"states.lua",
	"take.lua",
	"machinery_end.lua",
	"single.lua",
}

var script = func() string {
	var b strings.Builder
	for _, name := range scriptFiles {
		text, err := files.ReadFile("script/" + name)
		if err != nil {
			panic(err) // a test reads every file
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}()

// Arguments of the commands, boxed once.
var (
	evalsha   any = "evalsha"
	eval      any = "eval"
	scriptArg any = script
	scriptSHA any = func() string {
		sum := sha1.Sum([]byte(script)) //nolint:gosec // as above
		return hex.EncodeToString(sum[:])
	}()
)

// The script's verbs: see script/arguments.lua.
const (
	verbSkip byte = iota
	verbTake
	verbPeek
	verbBack
	verbRefund
	verbReset
	verbCharge
	verbBlock
	verbRelease
	verbRenew
	verbGrant
)

// A limit as the script reads it: its size, that of what a lockout adds, and the
// places of numbers in it.
const (
	textLimit, textLockout  = 21, 16
	textPrecision           = 7
	textQuota, textCapacity = 13, 17
)

// encodeLimits writes a rule's limits as the script reads them. deny means that
// a value that cannot be read denies its key.
func encodeLimits(rule []core.Limit, deny bool) string {
	b := make([]byte, 0, textLimit*len(rule)+1)
	for _, limit := range rule {
		l := limits.Of(limit)
		id := l.Identity()
		precision := id.Detail()
		if id.Algorithm == meter.Lockout {
			precision = l.Waits.First
		}
		b = append(b, id.Kind())
		b = appendUint48(b, id.Window)
		b = appendUint48(b, precision)
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Quota))
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Capacity))
		if id.Algorithm == meter.Lockout {
			b = binary.LittleEndian.AppendUint32(b, uint32(l.Waits.Factor))
			b = appendUint48(b, l.Waits.Longest)
			b = appendUint48(b, l.Waits.Decay)
		}
		if id.Algorithm == meter.Calendar {
			b = append(b, make([]byte, textEdges)...) // see edges
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
