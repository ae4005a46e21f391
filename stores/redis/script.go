package redisstore

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by SHA-1; nothing is trusted for it
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

//go:embed script
var scriptFiles embed.FS

// algorithms is a set of algorithms, a bit for each wire number.
type algorithms uint8

func only(a meter.Algorithm) algorithms { return 1 << a }

// script is a script as commands have it, boxed once.
type script struct{ text, sha any }

// scripts has those that have been used.
var scripts [1 << 8]atomic.Pointer[script]

// scriptOf returns the script that has these algorithms, so that a call defines no function that it
// does not need.
func scriptOf(some algorithms) *script {
	if made := scripts[some].Load(); made != nil {
		return made
	}
	text := writeScript(some)
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	made := &script{text: text, sha: hex.EncodeToString(sum[:])}
	scripts[some].Store(made)
	return made
}

// stepLine begins the line of a step, and functions is the step of main.lua at which the functions of
// the algorithms stand.
const stepLine, functions = "--[", "functions"

// writeScript writes main.lua with the steps of the algorithms in the places of their lines.
func writeScript(some algorithms) string {
	steps := map[string]string{}
	if some&(only(meter.SlidingWindow)|only(meter.TokenBucket)) != 0 {
		steps[functions] = readScript("muldiv")
	}
	for a := range meter.Algorithms {
		if some&only(a) == 0 {
			continue
		}
		own, rest, _ := strings.Cut(readScript(a.String()), stepLine)
		steps[functions] += own
		for step := range strings.SplitSeq(rest, stepLine) {
			name, code, _ := strings.Cut(step, "]\n")
			word := "if"
			if steps[name] != "" {
				word = "elseif"
			}
			steps[name] += fmt.Sprintf("%s algorithm == %d then\n%s", word, uint8(a), code)
		}
	}
	text, rest, _ := strings.Cut(readScript("main"), stepLine)
	for step := range strings.SplitSeq(rest, stepLine) {
		name, after, _ := strings.Cut(step, "]\n")
		text += steps[name]
		if name != functions && steps[name] != "" {
			text += "end\n"
		}
		text += after
	}
	return text
}

func readScript(name string) string {
	text, err := scriptFiles.ReadFile("script/" + name + ".lua")
	if err != nil {
		panic(err) // a test reads every file
	}
	return string(text)
}

// Arguments of the commands, boxed once.
var (
	evalsha any = "evalsha"
	eval    any = "eval"
)

// The script's verbs: see script/main.lua. Those up to verbGrant have results.
const (
	verbTake byte = iota
	verbPeek
	verbCharge
	verbGrant
	verbRefund
	verbBlock
	verbReset
)

// A rule's limits as the script reads them: how many bytes come before the limits, the
// size of a limit, and the places of some of its numbers.
const (
	textHead      = 6
	textLimit     = 46
	textQuota     = 13
	textCapacity  = 17
	textUnlimited = 21
	textNumbers   = 22
)

// encodeLimits writes a rule's limits as the script reads them. If deny is true, a value that cannot be
// read denies its key for the shortest window.
func encodeLimits(rule []core.Limit, deny bool) string {
	le := binary.LittleEndian
	var shortest int64
	for _, limit := range rule {
		if window := meter.FromCore(limit).Window; deny && (shortest == 0 || window < shortest) {
			shortest = window
		}
	}
	b := appendUint48(nil, shortest)
	for _, limit := range rule {
		l := meter.FromCore(limit)
		id := l.Identity()
		precision, numbers := id.Detail(), [3]int64{l.Quota, l.Capacity} // of a calendar, see limitsAt
		if id.Algorithm == meter.Lockout {
			precision, numbers = l.Waits.First, [3]int64{l.Waits.Factor, l.Waits.Longest, l.Waits.Decay}
		}
		b = append(b, id.Kind())
		b = appendUint48(b, id.Window)
		b = appendUint48(b, precision)
		b = le.AppendUint32(b, uint32(l.Quota))
		b = le.AppendUint32(b, uint32(l.Capacity))
		b = append(b, 0)
		for _, n := range numbers {
			b = le.AppendUint64(b, uint64(n))
		}
	}
	return string(b)
}

func appendUint48(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(n))[:len(b)+6]
}

// limitsFor returns the limits of an item as the script reads them, with the item's quotas and the
// windows of calendars. Without a clock of the application, the process's clock finds the windows.
func (r *counterRule) limitsFor(it *core.Item, clock func() time.Time) any {
	limits := r.limits
	if r.calendars != nil {
		if clock == nil {
			clock = time.Now
		}
		limits = r.limitsAt(clock().UnixMicro())
	}
	if it.Quotas == nil {
		return limits
	}
	le, b := binary.LittleEndian, []byte(limits.(string))
	for i := range it.Quotas {
		m, unlimited := r.meterOf(it, i)
		limit := b[textHead+i*textLimit:]
		le.PutUint32(limit[textQuota:], uint32(m.Quota))
		le.PutUint32(limit[textCapacity:], uint32(m.Capacity))
		if unlimited {
			limit[textUnlimited] = 1
		}
	}
	return string(b)
}

// meterOf returns the meter of a limit with the quota of an item, and whether it has none.
func (r *counterRule) meterOf(it *core.Item, limit int) (m *meter.Meter, unlimited bool) {
	m = &r.meters[limit]
	if it.Quotas == nil || it.Quotas[limit] == m.Quota {
		return m, false
	}
	return m.For(it.Quotas[limit], new(meter.Meter)), it.Quotas[limit] == core.Unlimited
}

// calendar is a limit with calendar windows. The server knows no time zones, so the script gets the
// windows with each call.
type calendar struct {
	limit  int // its place in the rule
	zone   *time.Location
	length int64
}

// datedLimits are a rule's limits with the windows around the times from from to before to.
type datedLimits struct {
	limits   any // a string, boxed once
	from, to int64
}

// limitsAt returns the limits with, for each calendar, the window that a time is in, the one
// before and the one after: the server's time is in one of them.
func (r *counterRule) limitsAt(now int64) any {
	if d := r.dated.Load(); d != nil && now >= d.from && now < d.to {
		return d.limits
	}
	le, b := binary.LittleEndian, []byte(r.limits.(string))
	d := &datedLimits{from: -maxTime, to: maxTime}
	for _, c := range r.calendars {
		start, end := meter.CivilWindow(c.length, c.zone, time.UnixMicro(now).Unix())
		before, _ := meter.CivilWindow(c.length, c.zone, start-1)
		_, after := meter.CivilWindow(c.length, c.zone, end)
		numbers := b[textHead+c.limit*textLimit+textNumbers:]
		le.PutUint64(numbers, uint64(before*1_000_000))
		le.PutUint32(numbers[8:], uint32(start-before))
		le.PutUint32(numbers[12:], uint32(end-start))
		le.PutUint32(numbers[16:], uint32(after-end))
		d.from, d.to = max(d.from, start*1_000_000), min(d.to, end*1_000_000)
	}
	d.limits = string(b)
	r.dated.Store(d)
	return d.limits
}
