package policy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// A source is read again at the interval that the file says.
func TestASourceIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		var failure atomic.Bool
		var log lines
		reloads := 0
		set, err := policy.Parse("f.yaml", []byte("policies: [{name: a, key: ip, limits: 2/m, quotas: {source: customers, every: 10s}}]"),
			policy.Log(slog.New(slog.NewTextHandler(&log, nil))), policy.OnReload(func(error) { reloads++ }),
			policy.WithQuotas("", source(func(func(string, string) error) error { return errors.New("another") })),
			policy.WithQuotas("customers", source(func(row func(string, string) error) error {
				if failure.Load() {
					return errors.New("the database is gone")
				}
				return row("ann", fmt.Sprint(reads.Add(1)))
			})))
		if err != nil {
			t.Fatal(err)
		}
		after := func(d time.Duration, want int64) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := quotaOf(t, set, "ann"); got != want {
				t.Errorf("the quota is %d, want %d", got, want)
			}
		}
		after(9999*time.Millisecond, 1)
		after(time.Millisecond, 2)
		after(20*time.Second, 4)
		failure.Store(true)
		after(60*time.Second, 4)
		if n := strings.Count(log.String(), "the database is gone"); n != 1 || reloads != 1 {
			t.Errorf("said %d times, %d reloads:\n%s", n, reloads, log.String())
		}
		failure.Store(false)
		after(10*time.Second, 5)
		if !strings.Contains(log.String(), "level=INFO") || reloads != 2 {
			t.Errorf("%d reloads:\n%s", reloads, log.String())
		}
		// A new interval holds from now on.
		if err := set.Replace([]byte("policies: [{name: a, key: ip, limits: 2/m, quotas: {source: customers, every: 1h}}]")); err != nil {
			t.Fatal(err)
		}
		after(59*time.Minute, 5)
		// Of two intervals of one source, the shorter holds, wherever it is in the file.
		for i, every := range [][2]string{{"", ", every: 1s"}, {", every: 1s", ""}} {
			if err := set.Replace(fmt.Appendf(nil, "policies: [{name: a, key: ip, limits: 2/m, quotas: {source: customers%s}}, {name: b, key: ip, limits: 2/m, quotas: {source: customers%s}}]", every[0], every[1])); err != nil {
				t.Fatal(err)
			}
			after(time.Second, int64(6+i))
		}
		if err := set.Replace([]byte("policies: [{name: a, key: ip, limits: 2/m}]")); err != nil {
			t.Fatal(err)
		}
		after(time.Hour, -1)
		if reads.Load() != 7 {
			t.Errorf("%d reads: a source that nobody names is not read", reads.Load())
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

// hanging is a source that answers only when its context ends.
type hanging struct{ begun atomic.Int64 }

func (h *hanging) Quotas(ctx context.Context, row func(key, quotas string) error) error {
	if h.begun.Add(1) == 1 {
		return row("ann", "5")
	}
	<-ctx.Done()
	return ctx.Err()
}

// A source that hangs stops nothing: neither requests nor Close nor changes of the file.
func TestASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "policies: [{name: a, key: ip, limits: 2/m, quotas: {source: customers, every: 1s}}]"
		h := &hanging{}
		set, err := policy.Parse("f.yaml", []byte(text), policy.WithQuotas("customers", h), policy.Log(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		if err := set.Replace([]byte(text + "\n")); err != nil || quotaOf(t, set, "ann") != 5 || h.begun.Load() != 2 {
			t.Errorf("%v, %d reads", err, h.begun.Load())
		}
		if d := set.Check(&explained{}); !d.Allowed {
			t.Errorf("%+v", d)
		}
		time.Sleep(31 * time.Second) // longer than it may take
		if h.begun.Load() != 3 || quotaOf(t, set, "ann") != 5 {
			t.Errorf("%d reads", h.begun.Load())
		}
		before := time.Now()
		if err := set.Close(); err != nil || time.Since(before) > 0 {
			t.Errorf("Close: %v after %v", err, time.Since(before))
		}
	})
}

// While tables and policies change all the time, each request is decided by one
// version of the table.
func TestTablesUnderLoad(t *testing.T) {
	const keys, changes = 1000, 40
	var version atomic.Int64
	rows := source(func(row func(key, quotas string) error) error {
		// One of the two limits denies everything, in turns: a request that met a half of
		// each of two versions could be allowed.
		quotas := "0/m, 1000000/h"
		if version.Add(1)%2 == 0 {
			quotas = "1000000/m, 0/h"
		}
		for i := range keys {
			if err := row(fmt.Sprintf("10.0.%d.%d", i/250, i%250), quotas); err != nil {
				return err
			}
		}
		return nil
	})
	const text = "policies: [{name: a, key: ip, limits: [5/m, 5/h], quotas: {source: customers, every: 1s}}]"
	dir := folderWith(t, map[string]string{"p.yaml": text})
	set, err := policy.Load(filepath.Join(dir, "p.yaml"), policy.WithQuotas("customers", rows), policy.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // nothing depends on it
	var sent, allowed, wrong atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				d := set.Check(&explained{address: fmt.Sprintf("10.0.%d.%d:5", i%keys/250, i%250)})
				if sent.Add(1); d.Allowed {
					allowed.Add(1)
				}
				if d.Reason != core.ReasonOverLimit {
					wrong.Add(1)
				}
			}
		})
	}
	for range changes {
		if err := set.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if allowed.Load() > 0 || wrong.Load() > 0 || sent.Load() < 100 || version.Load() < changes {
		t.Errorf("of %d requests %d were allowed, and %d have met something else than a limit; %d versions", sent.Load(), allowed.Load(), wrong.Load(), version.Load())
	}
}

// Each loss of a table is logged once, and again after the table has come back, with the same time of modification
// and the same content as before.
func TestATableThatIsLostAgainIsLoggedAgain(t *testing.T) {
	for name, modified := range map[string]time.Time{"long ago": time.Unix(900_000_000, 0), "just now": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "customers")
				if err := os.WriteFile(path, []byte("ann: 5\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				if !modified.IsZero() {
					if err := os.Chtimes(path, modified, modified); err != nil {
						t.Fatal(err)
					}
				}
				var log lines
				set, err := policy.Parse("f.yaml", []byte("policies: [{name: a, key: ip, limits: 2/m, quotas: {source: customers, every: 1s}}]"),
					policy.Log(slog.New(slog.NewTextHandler(&log, nil))), policy.WithQuotas("customers", policy.QuotaFile(path)))
				if err != nil {
					t.Fatal(err)
				}
				for losses := range 3 {
					for _, move := range [][2]string{{path, path + ".away"}, {path + ".away", path}} {
						if err := os.Rename(move[0], move[1]); err != nil {
							t.Fatal(err)
						}
						time.Sleep(5 * time.Second)
						synctest.Wait()
					}
					if got := strings.Count(log.String(), "table of quotas rejected"); got != losses+1 || quotaOf(t, set, "ann") != 5 {
						t.Errorf("after %d losses: logged %d times, quota %d\n%s", losses+1, got, quotaOf(t, set, "ann"), &log)
					}
				}
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A source that returns what it has, although its context has ended, is cut off by row.
func TestASourceHearsThatItsContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		var told error
		s := contextSource(func(ctx context.Context, row func(key, quotas string) error) error {
			if reads++; reads > 1 {
				begun := time.Now()
				if <-ctx.Done(); time.Since(begun) != 30*time.Second {
					t.Errorf("the context ends after %v", time.Since(begun))
				}
				told = row("ann", "7")
				return told
			}
			return row("ann", "5")
		})
		set, err := policy.Parse("f.yaml", []byte("policies: [{name: a, key: ip, limits: 2/m, quotas: {source: customers, every: 1s}}]"),
			policy.WithQuotas("customers", s), policy.Log(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(31500 * time.Millisecond)
		synctest.Wait()
		if !errors.Is(told, context.DeadlineExceeded) || quotaOf(t, set, "ann") != 5 {
			t.Errorf("row returned %v, the quota is %d", told, quotaOf(t, set, "ann"))
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

type contextSource func(ctx context.Context, row func(key, quotas string) error) error

func (s contextSource) Quotas(ctx context.Context, row func(key, quotas string) error) error {
	return s(ctx, row)
}
