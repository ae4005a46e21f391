package live_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// The longest order is done, and so are the shortest and the longest ban.
func TestTheBoundsOfOrders(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	const key = `"limiter":"api","rule":"user","key":"bob"`
	longest := int64(core.MaxWindow / time.Second)
	for order, want := range map[string]int{
		fmt.Sprintf("%-16384s", `{"do":"look",`+key+`}`):            http.StatusOK,
		fmt.Sprintf("%-16385s", `{"do":"look",`+key+`}`):            http.StatusRequestEntityTooLarge,
		`{"do":"ban","seconds":1,` + key + `}`:                      http.StatusOK,
		`{"do":"ban","seconds":0,` + key + `}`:                      http.StatusBadRequest,
		fmt.Sprintf(`{"do":"ban","seconds":%d,%s}`, longest, key):   http.StatusOK,
		fmt.Sprintf(`{"do":"ban","seconds":%d,%s}`, longest+1, key): http.StatusBadRequest,
		`{"do":"unblock",` + key + `}`:                              http.StatusOK,
	} {
		if got := s.post(order); got.status != want {
			t.Errorf("%d bytes, %.60s: %+v, want %d", len(order), order, got, want)
		}
	}
	for line := range strings.Lines(s.log.String()) {
		if ban := strings.Contains(line, "action=ban"); ban != strings.Contains(line, " for=") {
			t.Errorf("only a ban has a time: %s", line)
		}
	}
}

// A wait is shown in whole milliseconds, rounded up: nobody is told to come back too early.
func TestAWaitIsRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		page.Manage(l)
		hit := core.Hit{Rule: "user", Key: "bob"}
		if err := l.Block(t.Context(), time.Second, hit); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			sleep time.Duration
			want  int64
		}{{0, 1000}, {time.Microsecond, 1000}, {998 * time.Microsecond, 1000}, {time.Microsecond, 999}, {time.Microsecond, 999}} {
			time.Sleep(step.sleep)
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"do":"look","limiter":"api","rule":"user","key":"bob"}`))
			r.Header.Set("Content-Type", "application/json")
			page.ServeHTTP(w, r)
			var got answered
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Limits) != 1 || got.Limits[0].RetryMS != step.want {
				t.Errorf("%d, %s, %v, want a wait of %d ms", w.Code, w.Body, err, step.want)
			}
		}
	})
}

// The first event has the counts of all seconds, whenever the viewer comes.
func TestTheFirstEventOfAViewerIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		allow(l, 1, "alice")
		for second := range 5 {
			v := follow(t, page)
			time.Sleep(time.Second)
			got := v.all()
			v.leave()
			if len(got) == 0 || len(got[0].Limiters[0].Rules[0].Allowed) != 120 {
				t.Errorf("a viewer who comes in second %d: %+v", second, got)
			}
		}
	})
}

// A key that was denied has how long ago that was, in seconds.
func TestHowLongAgoAKeyWasDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		v := follow(t, page)
		time.Sleep(2500 * time.Millisecond)
		allow(l, 4, "alice")
		time.Sleep(4 * time.Second)
		for _, s := range v.all()[3:] {
			if keys := s.Limiters[0].Denied; len(keys) != 1 || keys[0].Ago != s.Second-2 {
				t.Errorf("second %d: %+v", s.Second, keys)
			}
		}
		v.leave()
	})
}
