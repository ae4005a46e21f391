package fasthttprequest

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// Another limiter, or an upstream of a proxy, has written RateLimit lines before.
func TestHeadersOfOtherLimitersStay(t *testing.T) {
	l := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1)}}},
		Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return time.Unix(1e9, 0) }})),
	}))
	take := func() core.Decision {
		d, err := l.Take(context.Background(), 1, core.Hit{Rule: "k", Key: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	allowed, denied := take(), take()
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		var c fasthttp.RequestCtx
		c.Response.Header.Set(name, "theirs")
		c.Response.Header.Set("Cache-Control", "public")
		setHeaders(&c, &allowed)
		setHeaders(&c, &denied)
		for _, line := range []struct {
			name   string
			values []string
		}{
			{"RateLimit", []string{`"k";r=0;t=3600`, `"k";r=0;t=3600`}},
			{"RateLimit-Policy", []string{`"k";q=1;w=3600`, `"k";q=1;w=3600`}},
			{"Cache-Control", []string{"no-store"}},
			{"Retry-After", []string{"3600"}},
		} {
			if line.name == name {
				line.values = append([]string{"theirs"}, line.values...)
			}
			if got := texts(c.Response.Header.PeekAll(line.name)); !slices.Equal(got, line.values) {
				t.Errorf("%s after theirs in %s: %q, want %q", line.name, name, got, line.values)
			}
		}
	}
}

func texts(values [][]byte) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// A hook may take a value from the client.
func TestNoValueOfADenialBeginsAnotherLine(t *testing.T) {
	for _, name := range []string{"Content-Type", "content-type", "X-Reason"} {
		for _, end := range []string{"\n", "\r", "\r\n"} {
			var c fasthttp.RequestCtx
			setDenialHeader(&c, core.Denial{Header: []core.Header{{Name: name, Value: "text/plain" + end + "X-Made-Up: 1"}}}, false)
			if got := string(c.Response.Header.Peek(name)); got != "text/plain"+spaces(len(end))+"X-Made-Up: 1" {
				t.Errorf("%s with %q: %q", name, end, got)
			}
		}
	}
}

func spaces(n int) string { return "  "[:n] }

func TestADenialHasNoHeadersOfAnotherBody(t *testing.T) {
	var c fasthttp.RequestCtx
	for _, name := range []string{"ETag", "Last-Modified", "X-Other"} {
		c.Response.Header.Set(name, "1")
	}
	deny(&c, core.Denial{Status: http.StatusTooManyRequests, Header: []core.Header{{Name: "Content-Type", Value: "text/plain"}}})
	for name, want := range map[string]string{"ETag": "", "Last-Modified": "", "X-Other": "1", "Content-Type": "text/plain"} {
		if got := string(c.Response.Header.Peek(name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
