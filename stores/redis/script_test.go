package redisstore

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// The script of a call has the algorithms that its rules use, and no others.
func TestTheScriptHasNoAlgorithmThatItDoesNotNeed(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	for a := range meter.Algorithms {
		script := scriptOf(only(a))
		text := script.text.(string)
		if got := client.ScriptLoad(t.Context(), text); got.Err() != nil || got.Val() != script.sha {
			t.Errorf("%v: %v, %v, want %v", a, got.Val(), got.Err(), script.sha)
		}
		for other := range meter.Algorithms {
			if has := strings.Contains(text, fmt.Sprintf("if algorithm == %d then", uint8(other))); has != (other == a) {
				t.Errorf("%v: the script has %v: %v", a, other, has)
			}
		}
	}
}

// A URL with sentinels has the user and the password of the database before the @, and
// those of the sentinels in its parameters.
func TestTheUsersOfAURLWithSentinels(t *testing.T) {
	u := core.Must(url.Parse("redis://bob:one@10.0.0.1/2?master=m&addr=[::2]&sentinel_username=guard&sentinel_password=two"))
	o, err := sentinelOptions(*u, u.Query())
	want := &redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"10.0.0.1:26379", "[::2]:26379"}, SentinelUsername: "guard", SentinelPassword: "two",
		Username: "bob", Password: "one", DB: 2, DialerRetries: 1, ContextTimeoutEnabled: true,
	}
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
}
