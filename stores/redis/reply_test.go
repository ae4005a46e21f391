package redisstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// head is the beginning of the reply to one decision with the nonce.
func head(nonce uint64) string { return headOf(nonce, bitWaits, 1_764_000_123_456_789) }

func headOf(nonce uint64, status byte, at uint64) string {
	b := append(binary.LittleEndian.AppendUint64(nil, nonce), status)
	return string(binary.LittleEndian.AppendUint64(b, at))
}

// sentExchange is an exchange with a take from one key for each number, which is
// that of its limits.
func sentExchange(t testing.TB, nonce uint64, limits ...int) *exchange {
	s := New(nowhere{})
	x := &exchange{store: s}
	for _, n := range limits {
		c := s.newCall(operation{t.Context(), time.Now().Add(time.Hour)}, verbTake, oneItem(n))
		c.send(time.Now())
		x.calls = append(x.calls, c)
	}
	x.arm(t.Context(), evalsha, scriptSHA)
	x.nonce = nonce
	return x
}

// nowhere is a client of no server.
type nowhere struct{}

func (nowhere) Process(context.Context, redis.Cmder) error { return io.EOF }

// limitReply is the part of a reply that is a limit's. The last number is there if
// some limit does not admit.
func limitReply(left uint32, times ...int64) string {
	b := binary.LittleEndian.AppendUint32(nil, left)
	for _, n := range times {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		b = b[:len(b)-1]
	}
	return string(b)
}

// Whatever comes, it is a reply or an error.
func TestWeirdRepliesAreErrors(t *testing.T) {
	for what, val := range map[string]any{
		"nil": nil, "number": int64(5), "array": []any{int64(1)}, "map": map[any]any{"a": "b"}, "text": "5", "empty": "",
		"too short": head(7), "too long": head(7) + limitReply(1, 2, 1, 0) + "x",
		"without waits": head(7) + limitReply(1, 2, 1), "with waits": headOf(7, statusMade, 1) + limitReply(1, 2, 1, 0), "an unknown status": headOf(7, 16, 1) + limitReply(1, 2, 1), "another's": head(8) + limitReply(1, 2, 1, 0),
	} {
		cmd := redis.NewCmd(t.Context())
		cmd.SetVal(val)
		var e *Error
		x := sentExchange(t, 7, 1)
		c := x.calls[0]
		x.settle(exempt{cmd}, nil)
		if err := c.err; !errors.As(err, &e) || e.Class != ClassBadReply || !e.Unknown || len(c.done) != 1 {
			t.Errorf("%s: error %v, want class %v", what, err, ClassBadReply)
		}
	}
	for what, val := range map[string]string{
		"huge remaining": head(7) + limitReply(1<<31, 2, 1, 0),
		"negative reset": head(7) + limitReply(1, -2, 0, 0), "huge reset": head(7) + limitReply(1, 1<<54, 1, 0), "odd retry": head(7) + limitReply(1, 2, 1, -2),
		"negative more": head(7) + limitReply(1, 2, -1, 0), "more after all": head(7) + limitReply(1, 2, 3, 0),
		"impossible time": headOf(7, bitWaits, 1<<60) + limitReply(1, 2, 1, 0), "impossible wait": head(7) + limitReply(1, 2, 1, 1<<54),
	} {
		var e *Error
		if _, err := parse(val[replyHead+1:], true, oneItem(1)); !errors.As(err, &e) || e.Class != ClassDamaged || !errors.Is(err, core.ErrDamaged) {
			t.Errorf("%s: error %v, want class %v", what, err, ClassDamaged)
		}
	}
	items := oneItem(1)
	r, err := parse((head(7) + limitReply(1, 2, 1, -1))[replyHead+1:], true, items)
	if err != nil {
		t.Fatal(err)
	}
	item := items[0]
	if allowed := r.fill(items); allowed || item.Results[0] != (core.Result{Remaining: 1, ResetAfter: 2 * time.Microsecond, MoreAfter: time.Microsecond, RetryAfter: core.Never}) || item.At != 1_764_000_123_456_789 {
		t.Errorf("allowed %v, item %+v", allowed, item)
	}
	const most = core.MaxQuota
	if r, err = parse((head(7) + limitReply(most, 1<<53, 1<<52))[replyHead+1:], false, items); err != nil {
		t.Fatal(err)
	}
	if allowed := r.fill(items); !allowed || item.Results[0] != (core.Result{Allowed: true, Remaining: most, ResetAfter: 1 << 53 * time.Microsecond, MoreAfter: 1 << 52 * time.Microsecond}) {
		t.Errorf("allowed %v, item %+v", allowed, item)
	}
}

// Times and waits of up to maxTime are read, and no larger ones.
func TestTheBoundsOfAReply(t *testing.T) {
	for _, c := range []struct {
		at, retry int64
		readable  bool
	}{{maxTime, maxTime, true}, {-maxTime, maxTime, true}, {maxTime + 1, 1, false}, {-maxTime - 1, 1, false}, {0, maxTime + 1, false}} {
		text := headOf(7, bitWaits, uint64(c.at)) + limitReply(0, 1, 1, c.retry)
		if _, err := parse(text[replyHead+1:], true, oneItem(1)); (err == nil) != c.readable {
			t.Errorf("the time %d and a wait of %d: %v", c.at, c.retry, err)
		}
	}
}

// oneItem is an item with so many limits.
func oneItem(limits int) []namedItem {
	return []namedItem{{Item: &core.Item{Results: make([]core.Result, limits)}, rule: &counterRule{limits: ""}}}
}

func FuzzRedisReply(f *testing.F) {
	f.Add(head(7)+limitReply(1, 2, 1, 0), 1, -1)
	f.Add(head(7)+limitReply(1, 2, 1, 0)+"\x00"+head(7)[9:], 1, 0)
	f.Add(head(7)[:8]+"\x02\x03\x00\x00\x00ERR"+head(7)[8:]+limitReply(1, 2, 1, 0), 1, 1)
	f.Add(headOf(7, statusMade, 1)+limitReply(1, 2, 1), 1, -1)
	f.Add(headOf(7, bitUnreadable|bitWaits, 1)+limitReply(1, 2, 1, 0), 1, -1)
	f.Add(head(7), 0, -1)
	f.Add("", 2, 1)
	f.Fuzz(func(t *testing.T, text string, limits, more int) {
		limits = min(max(limits, 0), 8)
		of := []int{limits}
		if more >= 0 {
			of = append(of, min(more, 8))
		}
		x := sentExchange(t, 7, of...)
		all := slices.Clone(x.calls)
		if err := x.split(text); err != nil {
			return
		}
		for i, c := range all {
			if c.err != nil {
				continue
			}
			items := oneItem(of[i])
			r, err := parse(c.reply, c.waits, items)
			if err != nil {
				continue
			}
			r.fill(items)
			for _, res := range items[0].Results {
				if res.Remaining < 0 || res.Remaining > core.MaxQuota || res.ResetAfter < 0 || res.RetryAfter < 0 || res.Allowed != (res.RetryAfter == 0) {
					t.Errorf("result %+v", res)
				}
			}
		}
	})
}

// shifted is a server that answers each command on a connection with the reply
// to the one before it, from the second on.
type shifted struct {
	net.Listener
	mu    sync.Mutex
	conns int
}

func newShifted(t *testing.T) *shifted {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &shifted{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			shift := s.conns == 1
			s.mu.Unlock()
			go serveShifted(c, shift)
		}
	}()
	return s
}

func serveShifted(c net.Conn, shift bool) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	before := ""
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		reply := "-ERR unknown command\r\n"
		if strings.EqualFold(args[0], "evalsha") {
			text := args[4][:8] + head(0)[8:] + limitReply(5, 1, 1, 0)
			reply = fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
			if shift {
				reply, before = before, reply
			}
			if reply == "" {
				text := head(0) + limitReply(5, 1, 1, 0)
				reply = fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
			}
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		var size int
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		buf := make([]byte, size+2)
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, err
		}
		args[i] = string(buf[:size])
	}
	return args, nil
}

// A connection whose replies are shifted gives nobody another's
// verdict, and is not used for long.
func TestShiftedRepliesAreErrorsAndEnd(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: newShifted(t).Addr().String(), DisableIndentity: true, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	b, err := New(client, Timeout(20*time.Second)).Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(10)}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []error
	for range 3 {
		got = append(got, storetest.Do(context.Background(), b, core.OpTake, &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}}))
	}
	var e *Error
	if !errors.As(got[0], &e) || e.Class != ClassBadReply {
		t.Errorf("error %v, want class %v", got[0], ClassBadReply)
	}
	if got[1] != nil || got[2] != nil {
		t.Errorf("the connection was used again: %v, %v", got[1], got[2])
	}
}
