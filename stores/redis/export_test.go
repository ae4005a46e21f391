package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // as in script.go
	"encoding/hex"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// The environment can name another script, so that one test binary serves all
// breaks of the script that internal/luamutants makes.
func init() {
	name := os.Getenv("FLOODGATE_REDIS_SCRIPT")
	if name == "" {
		return
	}
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	use(string(text))
}

// OldServer makes the store meet servers before Redis 7 until the test ends: there, a
// command in a script that the server does not run fails with a text that begins with
// its place in the script. The test must not be parallel.
func OldServer(t testing.TB) {
	before, arg, sha := script, scriptArg, scriptSHA
	t.Cleanup(func() { script, scriptArg, scriptSHA = before, arg, sha })
	use(`local redis = { call = redis.call, pcall = (function(pcall)
  return function(...)
    local r = pcall(...)
    local text = type(r) == 'table' and r.err or 'WRONGTYPE'
    if string.find(text, 'WRONGTYPE', 1, true) then return r end
    local own, found = string.gsub(text, '^ERR ', '')
    return { err = '@user_script: 1359: ' .. (found == 0 and '-' or '') .. own .. '\r\n' }
  end
end)(redis.pcall) }
` + before)
}

func use(text string) {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as in script.go
	script, scriptArg, scriptSHA = text, text, hex.EncodeToString(sum[:])
}

// SetAhead makes a store take its server's clock for this much ahead of the process's.
func SetAhead(s *Store, d time.Duration) { s.ahead.Store(d.Microseconds()) }

// ScriptText returns the script.
func ScriptText() string { return script }

// Verbs returns the verbs of the calls in a command, such as "take" or "take take".
func Verbs(cmd redis.Cmder) (verbs []string) {
	for _, arg := range cmd.Args() {
		if x, ok := arg.(*exchange); ok {
			for _, c := range x.calls {
				verbs = append(verbs, [...]string{"skip", "take", "peek", "back", "refund", "reset", "charge", "block", "release", "renew", "grant"}[c.verb])
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
	rule := &counterRule{limits: encodeLimits(limits, deny), edges: edgesOf(limits)}
	verb := verbTake
	if peek {
		verb = verbPeek
	}
	for _, cost := range costs {
		items := []namedItem{{&core.Item{Cost: cost, Results: make([]core.Result, len(limits))}, rule, "k"}}
		x.calls = append(x.calls, s.newCall(operation{context.Background(), time.Now().Add(time.Hour)}, verb, items))
	}
	x.arm(context.Background(), evalsha, scriptSHA)
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
