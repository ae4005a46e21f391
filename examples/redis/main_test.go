package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

func TestTwoInstancesShareALimit(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), "redis://"+redistest.Start(t).Addr+"/0", &out); err != nil {
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

func TestWithoutRedisItSaysSo(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), "redis://127.0.0.1:1/0", &out); err == nil || !strings.Contains(err.Error(), "needs Redis") {
		t.Error(err)
	}
}
