package redisstore

import (
	"io/fs"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// Verbs returns the verbs of the calls in a command, such as "take" or "take take".
func Verbs(cmd redis.Cmder) (verbs []string) {
	for _, arg := range cmd.Args() {
		if x, ok := arg.(*exchange); ok {
			for _, c := range x.calls {
				verbs = append(verbs, [...]string{"take", "peek", "charge", "grant", "refund", "block", "reset"}[c.verb])
			}
		}
	}
	return verbs
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
