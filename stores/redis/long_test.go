package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// scriptMemory returns how many bytes the server's script interpreter has.
func scriptMemory(t *testing.T, server *redistest.Server) int {
	t.Helper()
	for line := range strings.Lines(server.MustDo("INFO", "memory")) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "used_memory_lua:"); found {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the server does not tell the memory of its scripts")
	return 0
}

// A value that is far longer than any of the store's is not read, neither by a
// take nor by a peek, whatever its first byte is; and a take replaces it.
func TestALongForeignValueIsNotRead(t *testing.T) {
	t.Parallel()
	const long = 64 << 20
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	quiet := redisstore.Log(slog.New(slog.DiscardHandler))
	for what, rules := range map[string][]core.StoreRule{
		"one limit":  {{Name: "r", Limits: []core.Limit{core.PerHour(10)}}},
		"two limits": {{Name: "r", Limits: []core.Limit{core.PerHour(10), {Quota: 10, Window: 24 * time.Hour}}}},
		"denying":    {{Name: "r", Limits: []core.Limit{core.PerHour(10)}, DenyUnreadable: true}},
	} {
		for _, first := range []string{"x", "\x02", "\x03"} {
			t.Run(fmt.Sprintf("%s/%x", what, first), func(t *testing.T) {
				b := bind(t, client, rules, redisstore.Timeout(patience), quiet)
				limits := len(rules[0].Limits)
				name := stored(t, "k")
				server.MustDo("SET", name, first)
				server.MustDo("SETRANGE", name, strconv.Itoa(long), "x")
				before := scriptMemory(t, server)
				for range 3 {
					peek := one("k", 1, limits)
					if err := storetest.Do(t.Context(), b, core.OpPeek, peek); err != nil {
						t.Fatal(err)
					}
				}
				batch := one("k", 1, limits)
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed != (what != "denying") {
					t.Fatalf("allowed %v, error %v", batch.Allowed, err)
				}
				if grown := scriptMemory(t, server) - before; grown > long/4 {
					t.Errorf("the script's memory has grown by %d bytes: it has read the value", grown)
				}
				if size := server.MustDo("STRLEN", name); len(size) > len(":100") {
					t.Errorf("the value has %s bytes after a take", size)
				}
			})
		}
	}
}

// A value of the format is read up to the length that programs of several limits
// can reach, and not above.
func TestHowLongAValueMayBe(t *testing.T) {
	const most = 1<<20 + 80<<10 // of a rule of one limit
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	quiet := redisstore.Log(slog.New(slog.DiscardHandler))
	for size, readable := range map[int]bool{most: true, most + 1: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := bind(t, client, hourly, redisstore.Timeout(patience), quiet)
			take(t, b, "k")
			value := []byte(server.MustDo("GET", stored(t, "k")))
			value = append(value, foreignRecord(size-len(value), time.Now().Add(time.Hour))...)
			if len(value) != size {
				t.Fatalf("%d bytes, want %d", len(value), size)
			}
			server.MustDo("SET", stored(t, "k"), string(value))
			want := int64(9)
			if readable {
				want = 8
			}
			if got := take(t, b, "k").Items[0].Results[0].Remaining; got != want {
				t.Errorf("%d remain of 10 after two hits, want %d", got, want)
			}
		})
	}
}

// foreignRecord returns a record of so many bytes, of a limit that no rule of the
// tests has.
func foreignRecord(size int, expires time.Time) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(size-3))[:3]
	b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(expires.UnixMicro()))[:7]...)
	b = append(b, 44) // the kind
	return append(b, make([]byte, size-len(b))...)
}
