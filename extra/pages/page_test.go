// Package pages opens in a browser the page of package live and the report of floodgate replay.
package pages

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/live"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

const markup = `<script>document.title='owned'</script>`

// reversed looks as "admin" in a browser if it is not escaped.
const reversed, reversedShown = "\u202enimda", `\u{202e}nimda`

// planned is as long as the name of a rule can be.
var planned = strings.Repeat("planned", 9) + "9"

// instance is a process of a service: a limiter, and its page.
type instance struct {
	limiter *core.Limiter
	planned *core.Limiter
	page    *live.Page
	client  *redis.Client
	server  *httptest.Server
}

const path = "/admin/limits"

func newInstance(name, redisAddr string, c live.Config) *instance {
	client := redis.NewClient(&redis.Options{Addr: redisAddr, ContextTimeoutEnabled: true})
	c.Instance, c.Log = name, slog.New(slog.NewTextHandler(io.Discard, nil))
	c.ShowKey = func(_, _, key string) string { return key }
	i := &instance{page: core.Must(live.New(c)), client: client}
	// A browser, a Redis and the instances may keep the machine busy for longer than the store's
	// default Timeout.
	store := func() core.Store {
		return redisstore.New(client, redisstore.AnotherInstance(), redisstore.Timeout(2*time.Second))
	}
	i.limiter = core.Must(core.New(core.Config{
		Name: "api", Store: store(), Observer: i.page, Log: c.Log,
		Rules: []core.Rule{
			{Name: "address", Limits: []core.Limit{core.PerMinute(100_000)}},
			{Name: "user", Limits: []core.Limit{core.PerMinute(20), core.PerHour(100)}},
		},
	}))
	i.planned = core.Must(core.New(core.Config{
		Name: "planned", Store: store(), Observer: i.page, Log: c.Log, DryRun: true,
		Rules: []core.Rule{{Name: planned, Limits: []core.Limit{core.PerMinute(2)}}},
	}))
	i.page.Manage(i.limiter)
	i.page.ManageLogin("login", nothing{})
	return i
}

func (i *instance) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path, i.page)
	return mux
}

// start starts an instance in this process.
func start(t *testing.T, name, redisAddr string, c live.Config) *instance {
	t.Helper()
	i := newInstance(name, redisAddr, c)
	i.server = httptest.NewServer(i.handler())
	t.Cleanup(func() {
		_ = i.page.Close()
		i.server.Close()
		_ = i.client.Close()
	})
	return i
}

type nothing struct{}

func (nothing) Unblock(context.Context, string) error        { return nil }
func (nothing) UnblockAddress(context.Context, string) error { return nil }

func (i *instance) url() string { return i.server.URL + path }

func (i *instance) allows(key string) bool {
	return i.limiter.Allow(context.Background(), core.Hit{Rule: "user", Key: key})
}

// traffic lets clients send requests until the test ends.
func (i *instance) traffic(t *testing.T) {
	t.Helper()
	for n := range 8 {
		key := fmt.Sprintf("user %d", n)
		switch n {
		case 0:
			key = markup
		case 1:
			key = reversed
		}
		i.requests(t, fmt.Sprintf("203.0.113.%d", n), key, time.Duration(20*(n+1))*time.Millisecond)
	}
}

// requests lets one user send a request at each interval until the test ends.
func (i *instance) requests(t *testing.T, address, user string, every time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); wg.Wait() })
	wg.Go(func() {
		for pause := time.NewTicker(every); ; {
			select {
			case <-pause.C:
				_, _ = i.limiter.Take(ctx, 1, core.Hit{Rule: "address", Key: address}, core.Hit{Rule: "user", Key: user})
				_, _ = i.planned.Take(ctx, 1, core.Hit{Rule: planned, Key: user})
			case <-ctx.Done():
				pause.Stop()
				return
			}
		}
	})
}

func anybody(*http.Request, live.Action) (string, error) { return "olga", nil }

func complaints(t *testing.T, ctx context.Context) (asked, said func() []string) {
	t.Helper()
	var mu sync.Mutex
	var urls, texts []string
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			urls = append(urls, e.Request.URL)
		case *runtime.EventExceptionThrown:
			texts = append(texts, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	copied := func(s *[]string) func() []string {
		return func() []string { mu.Lock(); defer mu.Unlock(); return append([]string(nil), *s...) }
	}
	return copied(&urls), copied(&texts)
}

// An operator lets a client in on one instance, and bans it: both hold on another instance.
func TestAnOperatorInABrowser(t *testing.T) {
	server := redistest.Start(t)
	one := start(t, "one", server.Addr, live.Config{Authorize: anybody})
	two := start(t, "two", server.Addr, live.Config{Authorize: anybody})
	one.traffic(t)
	ctx := browser(t)
	asked, said := complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(one.url()+"?as=olga"))
	until(t, ctx, `document.querySelectorAll("td.key").length > 3 && document.querySelector("path[d^=M]") !== null`)
	until(t, ctx, `document.querySelector("section[aria-label=api] > button").textContent === "Show 1 idle rule" && document.querySelector("section[aria-label=planned] div > p").checkVisibility()`)
	press(t, ctx, "section[aria-label=api] > button")
	until(t, ctx, `document.querySelector("section[aria-label=api] > button").textContent === "Hide 1 idle rule" && [...document.querySelectorAll(".rules tr")].every(e => !e.hidden)`)
	texts := found(t, ctx, chromedp.Evaluate[string](`show({ name: "x", managed: true, store: { asked: 0, failed: 1000, errors: 2, degraded: 3 }, rules: [{ name: "r", limits: ["a", "b"], allowed: [9, 1], denied: [0, 2], dryRun: [0, 3] }, { name: "s", limits: ["c"], allowed: [0], denied: [0], dryRun: [0] }],
			denied: [{ id: "1", label: "k", rule: "r", count: 3, cut: true }, { id: "2", label: "m", rule: "r", count: 2 }], near: [{ id: "3", label: "n", rule: "s", used: 19, capacity: 20 }] });
		const x = views.get("x"), ban = $("card-for"), meter = used.cell().firstChild;
		show({ name: "y", store: { asked: 2000, p99Ms: 1.234, degraded: 1 }, rules: [{ name: "r", limits: [], allowed: [0], denied: [0], dryRun: [0] }] });
		show({ name: "z", managed: true, shared: true, store: { errors: 1 }, rules: [] });
		const others = [views.get("y"), views.get("z")];
		[x, ...others].forEach(v => v.node.remove());
		[x.node.textContent, others.map(v => v.store.textContent + " " + v.store.className + " " + v.idle.hidden), x.rules.get("r").s.svg.getAttribute("aria-label"),
			[...ban.options].map(o => o.value + " " + o.text + (o.selected ? "!" : "")), [meter.min, meter.low, meter.high, meter.max, meter.optimum].join(" "),
			[...x.node.querySelectorAll("button, path")].map(e => e.disabled || e.getAttribute("d")).join(" "),
			[...document.querySelectorAll("header *, dialog, dialog *")].map(e => ["role", "aria-label", "aria-labelledby", "aria-pressed", "type"].map(a => e.getAttribute(a)).filter(a => a).join(" ")).filter(a => a)].join("; ")`))
	if want := "xcounters of this process · 1,000 failed · 2 requests could not be decided on · 3 decided without the shared counters" +
		"ruleallowed/sdenied/sdry run/slast 2 minutesra, b1239/ssc000Show 1 idle rule" +
		"Denied mostkeyruledeniedkr3Inspectmr2InspectnoneNearest to their limitkeyruleusedns19/20InspectnoneOne keyrulerskeyInspect a key; " +
		"2,000 store operations/s, p99 1.23 ms · 1 decided without the shared counters bad true," +
		"shared counters · no store operations in this second · 1 requests could not be decided on bad true; at most 9 a second in the last two minutes; " +
		"60 1 minute,600 10 minutes,3600 1 hour!,86400 1 day,604800 7 days; 0 75 95 100 0; " +
		"M0.0 2.0L240.0 34.0 M0.0 38.0L240.0 30.0 M0.0 38.0L240.0 26.0     true   ; " +
		"status,show only keys that contain search,false,card-title,status,length of the ban"; texts != want {
		t.Errorf("the page writes\n%s, want\n%s", texts, want)
	}
	texts = found(t, ctx, chromedp.Evaluate[string](`[[-1, 0, 999, 1000, 118001, 120001, 7200000, 7200001, 172800000, 172800001].map(lasting), shown("a b\u00a0\u2028\u2029"), line([0, 10], 10),
		(cell => { counted.set(cell, { over: 1, count: 2000 }); return cell.textContent; })(counted.cell()),
		(cell => { used.set(cell, { used: 199, capacity: 200 }); return cell.textContent + cell.firstChild.getAttribute("aria-label"); })(used.cell()),
		sums([{ rules: [], denied: [{ ago: 59 }, { ago: 60 }], store: { p99Ms: 2, asked: 1 } }, { rules: [], store: { p99Ms: 1, asked: 0 } }]), $("sum-keys").textContent, $("sum-store").textContent,
		[{ note: "only here" }, { error: "failed" }, {}].map(r => { tell(r, "done"); return $("card-said").textContent + " " + $("card-said").className; })].join("; ")`))
	if want := `never,now,in 999 ms,in 1 s,in 119 s,in 3 min,in 2 h,in 3 h,in 2 days,in 3 days; a b\u{a0}\u{2028}\u{2029}; M0.0 38.0L240.0 2.0; ≥ 2,000; 199/20099 percent used; ; 1; 2.0 ms; only here bad,failed bad,done `; texts != want {
		t.Errorf("the page writes\n%s, want\n%s", texts, want)
	}
	until(t, ctx, `/^20\/20$/.test(document.querySelector("td.used span").textContent) && /^\d+\.\d ms$/.test(document.getElementById("sum-store").textContent)`)
	for _, text := range []string{markup, reversedShown} {
		until(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("td.key")].some(e => e.textContent === %q)`, text))
	}
	for two.allows("bob") { // until bob is denied
	}
	for range 50 {
		_ = one.allows("bob")
	}
	// With the keyboard alone: to bob's button, and into the dialog.
	do(t, ctx, chromedp.Focus(`button[aria-label="inspect bob"]`), chromedp.KeyEvent("\r"))
	until(t, ctx, `document.getElementById("card").open && document.querySelectorAll("#card-limits tr").length === 2 && document.getElementById("card-where").textContent === "api, rule user" && document.title === "Limits, live"`)
	do(t, ctx, chromedp.Focus("#card-unblock"), chromedp.KeyEvent("\r"))
	until(t, ctx, `document.getElementById("card-said").textContent === "Unblocked."`)
	eventually(t, "bob is let in", func() bool { return two.allows("bob") })
	press(t, ctx, "#card-ban")
	until(t, ctx, `document.getElementById("card-ban").textContent === "Ban for 1 hour?"`)
	write(t, ctx, "#card-for", "604800")
	until(t, ctx, `document.getElementById("card-ban").textContent === "Ban"`)
	press(t, ctx, "#card-ban")
	press(t, ctx, "#card-ban") // confirms it
	until(t, ctx, `document.getElementById("card-said").textContent === "Banned for 7 days." && [...document.querySelectorAll("#card-limits td:last-child")].every(e => e.textContent === "in 7 days")`)
	eventually(t, "bob is banned", func() bool { return !two.allows("bob") })
	press(t, ctx, "#card-ban")
	do(t, ctx, chromedp.KeyEvent("\u001b"))
	until(t, ctx, `!document.getElementById("card").open`)
	press(t, ctx, `section[aria-label="api"] form button`)
	until(t, ctx, `document.getElementById("card-title").textContent === "(the empty key)"`)
	press(t, ctx, "#card-close")
	write(t, ctx, "section[aria-label=login] input", "alice")
	press(t, ctx, "section[aria-label=login] button")
	until(t, ctx, `document.querySelector("section[aria-label=login] [role=status]").textContent.startsWith("Forgotten. An address ")`)
	press(t, ctx, "#pause")
	until(t, ctx, `document.getElementById("updated").textContent === "paused" && document.getElementById("pause").getAttribute("aria-pressed") === "true" && document.getElementById("pause").textContent === "Resume"`)
	for range 22 { // dora is denied, and the page shows it when it goes on
		_ = one.allows("dora")
	}
	if !found(t, ctx, chromedp.Evaluate[bool](`fetch("?events").then(async r => { const reader = r.body.pipeThrough(new TextDecoderStream()).getReader(); for (let text = ""; text.split("dora").length < 6;) text += (await reader.read()).value; await reader.cancel(); return [...document.querySelectorAll("td.key")].every(e => e.textContent !== "dora"); })`, chromedp.EvalAwaitPromise)) {
		t.Error("a page that pauses goes on")
	}
	press(t, ctx, "#pause")
	write(t, ctx, "#search", "DORA")
	until(t, ctx, `[...document.querySelectorAll("td.key")].filter(e => !e.parentNode.hidden).map(e => e.textContent).join() === "dora,dora" && document.getElementById("updated").textContent.startsWith("updated ")`)
	write(t, ctx, "#search", "")

	fits(t, ctx, "live")
	press(t, ctx, `button[aria-label="inspect bob"]`)
	until(t, ctx, `document.querySelectorAll("#card-limits tr").length === 2 && document.getElementById("card-ban").textContent === "Ban"`) // the click before Escape confirms nothing
	shoot(t, ctx, "live-card")
	if urls := fmt.Sprint(asked()); strings.Count(urls, "?as=olga") < 2 {
		t.Errorf("orders are not sent to the page's own address: %s", urls)
	}
	for _, url := range asked() {
		if !strings.HasPrefix(url, one.url()) && !strings.HasPrefix(url, one.server.URL+"/favicon") {
			t.Errorf("the page asked for %s", url)
		}
	}
	if texts := said(); len(texts) > 0 {
		t.Errorf("the page complained: %q", texts)
	}
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
	t.Logf("after %s: %s", time.Since(begin), what)
}

func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("FLOODGATE_SCREENSHOTS") // to be looked at
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), found(t, ctx, chromedp.FullScreenshot(100)), 0o600); err != nil {
		t.Error(err)
	}
}

// The page of examples/live shows the example's own traffic. Its picture is the one of docs/operate/live.md:
// with FLOODGATE_SCREENSHOTS set, the test waits for a minute of traffic.
func TestThePageOfTheExample(t *testing.T) {
	url := example(t, "live", "/admin/limits")
	ctx := browser(t)
	paint(t, ctx, 1100, "light")
	do(t, ctx, chromedp.Navigate(url))
	until(t, ctx, link+` === "live" && document.getElementById("link").className === "live" && ["allowed", "denied", "keys"].every(id => Number(document.getElementById("sum-" + id).textContent) > 0)`)
	const drawn = `document.querySelector("path[d^=M]").getAttribute("d").split(/[ML]/).filter(point => point && !point.endsWith(" 38.0")).length`
	for os.Getenv("FLOODGATE_SCREENSHOTS") != "" && found(t, ctx, chromedp.Evaluate[int](drawn)) < 60 {
	}
	shoot(t, ctx, "live")
}

// A page without Authorize offers nothing that changes anything.
func TestAPageThatCanOnlyLook(t *testing.T) {
	one := start(t, "one", redistest.Start(t).Addr, live.Config{})
	one.traffic(t)
	eventually(t, "bob is blocked", func() bool {
		return one.limiter.Block(t.Context(), time.Hour, core.Hit{Rule: "user", Key: "bob"}) == nil
	})
	one.requests(t, "203.0.113.9", "bob", 20*time.Millisecond) // the page forgets who has stopped
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(one.url()))
	do(t, ctx, chromedp.Focus(`button[aria-label="inspect bob"]`))
	for one.allows("carol") { // another row must not take the focus
	}
	until(t, ctx, `[...document.querySelectorAll("td.key")].some(e => e.textContent === "carol") && document.activeElement.getAttribute("aria-label") === "inspect bob"`)
	press(t, ctx, `button[aria-label="inspect bob"]`)
	until(t, ctx, `document.querySelectorAll("#card-limits tr").length === 2`)
	until(t, ctx, `document.getElementById("card-said").textContent === "This page can only look: the application has not allowed changes."`)
	disabled := found(t, ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll("#card-unblock, #card-ban, #card-for, section[aria-label=login] button")].every(e => e.disabled)`))
	answer := found(t, ctx, chromedp.Evaluate[string](`fetch("", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({do: "unblock", limiter: "api", rule: "user", key: "bob"})}).then(r => r.status + " " + document.title)`, chromedp.EvalAwaitPromise))
	if !disabled || answer != "403 Limits, live" || one.allows("bob") {
		t.Errorf("disabled %t, %q", disabled, answer)
	}
	// A limiter may be managed after its keys were seen.
	const disabledOnes = `[...document.querySelectorAll("section[aria-label=planned] button[aria-label^=inspect]")].filter(e => e.disabled).length`
	until(t, ctx, disabledOnes+` === 9 && !document.querySelector("section[aria-label=planned] form").checkVisibility()`)
	one.page.Manage(one.planned)
	until(t, ctx, disabledOnes+` === 0`)
}
