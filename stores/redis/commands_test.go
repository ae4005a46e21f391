package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// Values of the script have numbers of fixed length, and those of package swapstore
// of variable length. Apart from that, the two formats say the same.

const (
	kindUsedUp  = 126
	latest      = math.MaxInt64 / 1000 // no time in a value of package swapstore is later
	windowBytes = 6
	noNumber    = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" // of variable length
)

// translator translates values of the script, for a rule.
type translator struct {
	ids    []meter.Identity
	meters []meter.Meter
}

func newTranslator(rule []core.Limit) (t translator) {
	for _, limit := range rule {
		l := meter.FromCore(limit)
		t.ids, t.meters = append(t.ids, l.Identity()), append(t.meters, meter.New(l))
	}
	return t
}

// number reads a number of some bytes.
func number(text string, bytes int) (n int64) {
	for i := range bytes {
		n |= int64(text[i]) << (8 * i)
	}
	return n << (64 - 8*bytes) >> (64 - 8*bytes) // with the sign
}

func unsigned(text string, bytes int) uint64 {
	return uint64(number(text, bytes)) & (1<<(8*bytes) - 1)
}

// detailed reports whether the identity of a limit has a precision or a zone.
func detailed(kind byte) bool { return kind/2 == 2 || kind/2 == 6 }

// head returns the kind, window and detail as they begin a state of the script.
func head(id meter.Identity) string {
	b := binary.LittleEndian.AppendUint64([]byte{id.Kind()}, uint64(id.Window))[:1+windowBytes]
	if detailed(id.Kind()) {
		b = binary.LittleEndian.AppendUint64(b, uint64(id.Detail()))[:1+2*windowBytes]
	}
	return string(b)
}

// value returns a value of the script as package swapstore has it. A value that is
// malformed becomes one that cannot be read. fits is false if a number in it is larger
// than any that package swapstore reads.
func (t translator) value(v string) (value []byte, fits bool) {
	if v == "" || v[0] != 2 {
		return []byte(v[:min(1, len(v))]), true
	}
	value, fits = []byte{2}, true
	malformed := []byte{0}
	for rest := v[1:]; rest != ""; {
		if len(rest) < 11 {
			return malformed, fits
		}
		length, expiry := int(unsigned(rest, 3)), number(rest[3:], 7)
		if length < 8 || len(rest) < 3+length {
			return malformed, fits
		}
		fits = fits && -latest <= expiry && expiry <= latest
		body, ok, inRange := t.body(rest[10:], length-7)
		if !ok {
			return malformed, fits
		}
		fits = fits && inRange
		value = appendRecord(value, expiry, body)
		rest = rest[3+length:]
	}
	return value, fits
}

func appendRecord(value []byte, expiry int64, body []byte) []byte {
	end := binary.AppendVarint(nil, expiry)
	value = binary.AppendUvarint(value, uint64(len(end)+len(body)))
	return append(append(value, end...), body...)
}

// body translates what follows a record's expiry, size bytes at the beginning of text.
func (t translator) body(text string, size int) (body []byte, ok, fits bool) {
	kind := text[0]
	for i, id := range t.ids {
		if !strings.HasPrefix(text, head(id)) {
			continue
		}
		if size < len(head(id)) {
			return nil, false, false
		}
		body = binary.AppendUvarint(binary.AppendUvarint([]byte{kind}, uint64(id.Window)), uint64(id.Detail()))
		state, ok, fits := t.state(i, text[len(head(id)):size])
		if !ok { // only a program that has the limit reads it
			state = []byte(noNumber + text[len(head(id)):size])
		}
		return append(body, state...), true, fits
	}
	body = binary.AppendUvarint(nil, uint64(kind))
	text = text[1:size]
	if kind == kindUsedUp {
		if len(text) != windowBytes {
			return nil, false, true
		}
		n := unsigned(text, windowBytes)
		return binary.AppendUvarint(body, n), true, n <= uint64(core.MaxWindow.Microseconds())
	}
	if len(text) < windowBytes {
		return append(body, noNumber+text...), true, true
	}
	body, text = binary.AppendUvarint(body, unsigned(text, windowBytes)), text[windowBytes:]
	if detailed(kind) && len(text) >= windowBytes {
		body, text = binary.AppendUvarint(body, unsigned(text, windowBytes)), text[windowBytes:]
	} else {
		body = append(body, 0)
	}
	return append(body, text...), true, true
}

// state translates a state of a limit of the rule.
func (t translator) state(limit int, s string) (state []byte, ok, fits bool) {
	fits = true
	var at int64
	time := func(text string) []byte {
		at = number(text, 7)
		fits = fits && -latest <= at && at <= latest
		return binary.AppendVarint(nil, at)
	}
	count := func(dst []byte, text string) []byte { return binary.AppendUvarint(dst, unsigned(text, 4)) }
	switch t.ids[limit].Algorithm {
	case meter.Lockout:
		if len(s) != 22 {
			return nil, false, true
		}
		state = count(count(time(s), s[7:]), s[11:])
		return append(state, time(s[15:])...), true, fits
	case meter.BucketedWindow:
		return t.buckets(limit, s)
	case meter.SlidingLog:
		if len(s) < 2 || len(s) != 2+7*int(unsigned(s, 2)) {
			return nil, false, true
		}
		state = binary.AppendUvarint(nil, unsigned(s, 2))
		for i := 2; i < len(s); i += 7 {
			last := at
			switch written := time(s[i:]); {
			case i == 2:
				state = append(state, written...)
			case at < last:
				return nil, false, true
			default:
				state = binary.AppendUvarint(state, uint64(at-last))
			}
		}
		return state, true, fits
	default:
		if len(s) != 15 {
			return nil, false, true
		}
		return count(count(time(s), s[7:]), s[11:]), true, fits && strings.Trim(s, "\x00") != ""
	}
}

// buckets translates the state of a bucketed window.
func (t translator) buckets(limit int, s string) (state []byte, ok, fits bool) {
	if len(s) < 13 || len(s) != 13+4*int(unsigned(s[11:], 2)) {
		return nil, false, true
	}
	newest, total := number(s, 7), unsigned(s[7:], 4)
	id := t.ids[limit]
	state = binary.AppendUvarint(binary.AppendVarint(nil, newest), unsigned(s[11:], 2))
	sum := uint64(0)
	for i := len(s) - 4; i >= 13; i -= 4 { // the newest is the first there
		sum += unsigned(s[i:], 4)
		state = binary.AppendUvarint(state, unsigned(s[i:], 4))
	}
	ok = sum == total && total <= meter.MaxCount && int64(unsigned(s[11:], 2)) <= id.Window/id.Precision+1
	return state, ok, -latest/id.Precision <= newest && newest <= latest/id.Precision
}

// goRecord is a record of a value of package swapstore.
type goRecord struct {
	text   string
	end    int64
	limit  int   // of the rule; -1: another one
	needed int64 // until when a limit's state is needed; -1: it cannot be read
}

// records returns the records of a value of package swapstore as they mean at now.
func (t translator) records(value []byte, now int64) (all []goRecord, err error) {
	if len(value) == 0 || value[0] != 2 {
		return []goRecord{{text: fmt.Sprintf("%x", value), end: math.MaxInt64, limit: -1}}, nil
	}
	for r := (meter.Reader{Rest: value[1:]}); len(r.Rest) > 0; {
		length := r.Uvarint(uint64(len(r.Rest)))
		if r.Bad {
			return nil, fmt.Errorf("%x: malformed", value)
		}
		in := meter.Reader{Rest: r.Rest[:length]}
		r.Rest = r.Rest[length:]
		one := goRecord{end: in.Time(), limit: -1}
		if one.end+slack.Microseconds() > now { // later on, the script drops it, and Go when it writes the value
			one.text = fmt.Sprintf("until %d: %x", one.end, in.Rest)
		}
		for i, id := range t.ids {
			prefix := binary.AppendUvarint(binary.AppendUvarint([]byte{id.Kind()}, uint64(id.Window)), uint64(id.Detail()))
			if strings.HasPrefix(string(in.Rest), string(prefix)) {
				one.limit = i
				one.text, one.needed = t.meaning(i, in.Rest[len(prefix):], now)
			}
		}
		if kind := (meter.Reader{Rest: in.Rest}); kind.Uvarint(math.MaxUint64) == kindUsedUp {
			if length := int64(kind.Uvarint(1 << 48)); one.end <= now || one.end-now >= 2*length {
				one.text = ""
			}
		}
		if in.Bad {
			return nil, fmt.Errorf("%x: malformed", value)
		}
		all = append(all, one)
	}
	return all, nil
}

// meaning returns what a state of a limit means at now, "" for nothing, and until when it is needed.
func (t translator) meaning(limit int, state []byte, now int64) (text string, needed int64) {
	m := &t.meters[limit]
	text = fmt.Sprintf("%v %v", m.Algorithm(), t.ids[limit])
	r := meter.Reader{Rest: state}
	w := m.ReadState(&r)
	if r.Bad || len(r.Rest) > 0 {
		return fmt.Sprintf("%s: %x", text, state), -1
	}
	if w != nil {
		needed = m.Expiry(w)
		m.Advance(w, now)
	}
	if w == nil || m.Blank(w, now) {
		return "", needed
	}
	is := m.AppendState(nil, w)
	return fmt.Sprintf("%s: %x", text, is), needed
}

// ran returns how often the server has run the commands that the script gives.
func ran(server *redistest.Server) map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(server.MustDo("INFO", "commandstats")) {
		var calls int
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if _, err := fmt.Sscanf(rest, "%d,", &calls); err == nil {
			switch name {
			case "getrange", "pttl", "set", "setrange", "del", "pexpire", "time":
				n[name] = calls
			}
		}
	}
	return n
}

// A take that is allowed reads each key once, and writes it once.
func TestATakeReadsEachKeyOnce(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	first := map[string]int{"getrange": 1, "pttl": 1, "set": 1}
	again := map[string]int{"getrange": 1, "pttl": 1, "setrange": 1} // its lifetime stays
	other := map[string]int{"getrange": 1, "pttl": 1, "set": 1}
	type step struct {
		after time.Duration
		cost  int64
		want  map[string]int
	}
	fixed := core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow}
	two, three := core.PerMinute(5), core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}
	four := core.Limit{Quota: 5, Window: 2 * time.Minute, Aligned: true}
	used := []step{{0, 1, first}, {0, 1, again}, {time.Second, 1, again}, {0, 2, again}} // up to the quota
	for name, c := range map[string]struct {
		limits []core.Limit
		steps  []step
	}{
		"a fixed window":   {[]core.Limit{fixed}, used},
		"a sliding window": {[]core.Limit{hour}, used},
		"two windows":      {[]core.Limit{fixed, two}, used},
		"three windows":    {[]core.Limit{fixed, two, three}, used},
		"four windows":     {[]core.Limit{fixed, two, three, four}, used},
		"the largest quota": {[]core.Limit{{Quota: core.MaxQuota, Window: time.Second}}, []step{
			{0, core.MaxQuota, first}, {2*time.Second - time.Microsecond, 1, again},
		}},
		"hits of the window before": {[]core.Limit{hour}, []step{{0, 5, first}, {90 * time.Minute, 1, other}, {0, 1, again}}},
		"hits that count no more":   {[]core.Limit{hour}, []step{{0, 5, first}, {2 * time.Hour, 1, other}}},
		"a clock that goes back":    {[]core.Limit{hour}, []step{{0, 1, first}, {-time.Hour + time.Microsecond, 1, other}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, c.limits...)
			for i, s := range c.steps {
				f.clock.Advance(s.after)
				if s.after > time.Minute { // the server's clock stands still
					server.MustDo("PEXPIRE", stored(t, "k"), "100000000")
				}
				server.MustDo("CONFIG", "RESETSTAT")
				batch := one("k", s.cost, len(c.limits))
				if err := storetest.Do(t.Context(), f.bound, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Fatalf("take %d: allowed %v, error %v", i, batch.Allowed, err)
				}
				if got := ran(server); !maps.Equal(got, s.want) {
					t.Errorf("take %d: the script ran %v, want %v", i, got, s.want)
				}
			}
		})
	}
	t.Run("two keys", func(t *testing.T) {
		b := bind(t, client, hourly, redisstore.Timeout(patience))
		for _, want := range []map[string]int{{"getrange": 2, "pttl": 2, "set": 2, "time": 1}, {"getrange": 2, "pttl": 2, "setrange": 2, "time": 1}} {
			batch := one("a", 1, 1)
			batch.Items = append(batch.Items, one("b", 2, 1).Items...)
			server.MustDo("CONFIG", "RESETSTAT")
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			if got := ran(server); !maps.Equal(got, want) {
				t.Errorf("the script ran %v, want %v", got, want)
			}
		}
	})
}
