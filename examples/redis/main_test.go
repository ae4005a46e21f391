package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

func TestTwoInstancesShareALimit(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), "redis://"+redistest.Start(t).Addr+"/0", 20*time.Second, &out); err != nil {
		t.Fatal(err)
	}
	const want = `request 1 to instance 1: 200 OK, 4 left
request 2 to instance 2: 200 OK, 3 left
request 3 to instance 1: 200 OK, 2 left
request 4 to instance 2: 200 OK, 1 left
request 5 to instance 1: 200 OK, 0 left
request 6 to instance 2: 429 Too Many Requests, 0 left
request 7 to instance 1: 429 Too Many Requests, 0 left
request 8 to instance 2: 429 Too Many Requests, 0 left
`
	if out.String() != want {
		t.Errorf("printed:\n%s", &out)
	}
}

// Redis hangs, then dies; an instance then allows its share of the limit, two of five, by itself.
func TestRedisGoesAway(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"hangs", func() { proxy.Fail(faultproxy.Swallow, -1) }},
		{"dies", func() { server.Stop(); proxy.CutAll() }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			proxy.Fail(faultproxy.None, 0)
			i, err := start(t.Context(), "redis://"+proxy.Addr+"/0", 200*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			defer i.stop() //nolint:errcheck // of no interest any more
			fault.do()
			got := ""
			for range 6 {
				status, _, err := i.get(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got += status[:4]
			}
			if got != "200 200 429 429 429 429 " {
				t.Errorf("answers: %s", got)
			}
		})
	}
	if err := run(t.Context(), "redis://"+server.Addr, time.Second, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "this example needs Redis: ") {
		t.Errorf("without Redis: %v", err)
	}
}
