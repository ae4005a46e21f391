package redisstore

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// OldServer makes the store meet servers before Redis 7 until the test ends: there, a
// command in a script that the server does not run fails with a text that begins with
// its place in the script. The test must not be parallel.
func OldServer(t testing.TB) {
	before := library
	t.Cleanup(func() { library = before })
	library = &scripts{folder: oldServer{before.folder}}
}

// oldServer is a folder of the script, of which the first file begins with the fault.
type oldServer struct{ fs.FS }

func (o oldServer) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(o.FS, name)
	if name != "script/main.lua" {
		return text, err
	}
	return append([]byte(`local redis = { call = redis.call, pcall = (function(pcall)
  return function(...)
    local r = pcall(...)
    local text = type(r) == 'table' and r.err or 'WRONGTYPE'
    if string.find(text, 'WRONGTYPE', 1, true) then return r end
    local own, found = string.gsub(text, '^ERR ', '')
    return { err = '@user_script: 1359: ' .. (found == 0 and '-' or '') .. own .. '\r\n' }
  end
end)(redis.pcall) }
`), text...), err
}

// SetAhead makes a store take its server's clock for this much ahead of the process's.
func SetAhead(s *Store, d time.Duration) { s.ahead.Store(d.Microseconds()) }

// ScriptText returns the script with all algorithms.
func ScriptText() string { return library.of(^algorithms(0)).text.(string) }

// Verbs returns the verbs of the calls in a command, such as "take" or "take take".
func Verbs(cmd redis.Cmder) (verbs []string) {
	for _, arg := range cmd.Args() {
		if x, ok := arg.(*exchange); ok {
			for _, c := range x.calls {
				verbs = append(verbs, [...]string{"skip", "take", "peek", "charge", "grant", "back", "refund", "block", "reset"}[c.verb])
			}
		}
	}
	return verbs
}

// Ask returns the script's arguments for takes, or peeks, from one key each, with
// these costs. The reply begins with eight zeros.
func Ask(peek bool, now int64, limits []core.Limit, deny bool, costs ...int64) (args []any) {
	s := New(nil, Clock(func() time.Time { return time.UnixMicro(now) }))
	s.options.slackMillis = 1000
	x := &exchange{store: s}
	rule := &newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: limits, DenyUnreadable: deny}}).rules[0]
	verb := verbTake
	if peek {
		verb = verbPeek
	}
	for _, cost := range costs {
		items := []namedItem{{&core.Item{Cost: cost, Results: make([]core.Result, len(limits))}, rule, "k"}}
		x.calls = append(x.calls, s.newCall(operation{context.Background(), time.Now().Add(time.Hour)}, verb, items))
	}
	x.arm(context.Background(), x.script(), false)
	x.nonce = 0
	input, err := x.serialise()
	if err != nil {
		panic(err)
	}
	return []any{string(input), x.args[len(x.args)-1]}
}

// OneAtATime makes the store have one exchange under way, however long that takes.
// Calls that come meanwhile wait until it ends.
func OneAtATime(s *Store) *Store {
	s.lines.whole = joining.New(joining.Config[*call]{
		Send: s.send, Weight: func(*call) int { return 1 }, Gone: (*call).gone,
		Most: 1000, MostWeight: 1000, AtOnce: 1, Patience: time.Hour,
	})
	return s
}

// Waiting returns how many calls wait for the exchange under way.
func Waiting(s *Store) int { return s.lines.whole.Waiting() }

// SlotOf is slotOf.
var SlotOf = slotOf
