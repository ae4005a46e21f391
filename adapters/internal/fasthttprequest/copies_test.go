package fasthttprequest

import (
	"testing"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// reusing is a Ctx whose strings are parts of one buffer, which the next request overwrites.
type reusing struct{ buffer []byte }

func (c *reusing) text() string                    { return unsafe.String(&c.buffer[0], len(c.buffer)) }
func (c *reusing) Next() error                     { return nil }
func (c *reusing) Path(...string) string           { return c.text() }
func (c *reusing) Method(...string) string         { return c.text() }
func (c *reusing) Params(string, ...string) string { return c.text() }

// A key function or a hook may keep what a request returns.
func TestTextsOfARequestStay(t *testing.T) {
	c := &reusing{}
	var fast fasthttp.RequestCtx
	r := &Request{fiber: c, fast: &fast, major: &Major{Methods: []string{"GET"}, Route: func(Ctx) string { return c.text() }}}
	for name, read := range map[string]func() string{
		"Path": r.Path, "Method": r.Method, "Route": r.Route, "PathValue": func() string { return r.PathValue("id") },
	} {
		c.buffer = []byte("first")
		text := read()
		copy(c.buffer, "other")
		if text != "first" {
			t.Errorf("%s was %q, and is %q after the buffer has been used again", name, "first", text)
		}
	}
	c.buffer = []byte("GET")
	method := r.Method()
	copy(c.buffer, "PUT")
	if method != "GET" {
		t.Errorf("a known method is %q after the buffer has been used again", method)
	}
}
