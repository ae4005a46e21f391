package file

import (
	"fmt"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Denied is what a denied client gets in place of the default.
type Denied struct {
	Status      int
	Body        string
	ContentType string
	Header      []core.Header
}

const defaultContentType = "text/plain; charset=utf-8"

// deniedMapping returns the table of on-denied.
func deniedMapping() *mapping[Denied] {
	return &mapping[Denied]{
		name: "on-denied", want: "a mapping with status, body, content-type and headers", about: "The response that a denied client gets.",
		fields: []field[Denied]{
			{
				name: "status", without: "429", example: "503",
				about: "The status of the response.",
				value: set(whole[int](400, 599), func(d *Denied) *int { return &d.Status }),
			}, {
				name: "body", without: "a problem document (RFC 9457)", example: "Try again later.",
				about: "The body of the response.",
				value: set(text("the text of the body"), func(d *Denied) *string { return &d.Body }),
			}, {
				name: "content-type", initial: defaultContentType, example: "text/html",
				about: "The media type of the body.",
				value: set(headerValue("a media type such as text/plain"), func(d *Denied) *string { return &d.ContentType }),
			}, {
				name: "headers", example: "{X-Reason: limit}",
				about: "Further headers of the response.",
				value: set(headerLines(), func(d *Denied) *[]core.Header { return &d.Header }),
			},
		},
		together: "`content-type` requires `body`.",
		check: func(m filled, d *Denied) {
			m.needs("content-type", "body", "there is no body of this type", "")
			if d.ContentType == "" {
				d.ContentType = defaultContentType
			}
		},
	}
}

// headerValue is text that can stand in a response's header.
func headerValue(want string) kind[string] {
	return checked(want, func(s string) (problem, hint string) {
		if strings.IndexFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c >= 0x7f }) >= 0 {
			return "has a character that cannot stand in a header", ""
		}
		return "", ""
	})
}

// headerLines is a mapping of the names of headers and their values.
func headerLines() kind[[]core.Header] {
	text := headerValue("a header's value")
	look := shape{"a mapping of header names to text", func(d *definitions) object {
		return object{{"type", "object"}, {"additionalProperties", text.schema(d)}}
	}, nil}
	return kind[[]core.Header]{look, func(r *reader, v value) ([]core.Header, bool) {
		pairs, ok := r.pairs(v, "a mapping of header names and their values")
		var lines []core.Header
		for _, p := range pairs {
			if err := expression.HeaderName(p.name); err != nil {
				r.bad(value{p.key, p.value.path}, fmt.Sprintf("%q: %v", words.Shorten(p.name), err), "")
				ok = false
				continue
			}
			line, fine := text.read(r, p.value)
			lines, ok = append(lines, core.Header{Name: p.name, Value: line}), ok && fine
		}
		return lines, ok
	}}
}

// twins are the forms that write the same two headers: a response can have one.
const twins = core.HeadersDraft07 | core.HeadersDraft10

const sameHeaders = "draft-07 and draft-10 write the same headers"

// headers is a form of response headers or a list of them.
func headers() kind[core.Headers] {
	form := choice(word[core.Headers]{"draft-03", core.HeadersDraft03}, word[core.Headers]{"draft-07", core.HeadersDraft07}, word[core.Headers]{"draft-10", core.HeadersDraft10},
		word[core.Headers]{"x-epoch", core.HeadersXEpoch}, word[core.Headers]{"x-milliseconds", core.HeadersXMillis}, word[core.Headers]{"x-seconds", core.HeadersXSeconds}, word[core.Headers]{"off", core.HeadersOff})
	const most = 7 // of a list
	one, many := form.shape, listOf(form.shape, most, true)
	return kind[core.Headers]{oneOf(form.words+", or a list of these", one, many), func(r *reader, v value) (core.Headers, bool) {
		before := len(r.errs)
		items := r.items(v, most, "a list of header forms")
		var h core.Headers
		for _, item := range items {
			got, ok := form.read(r, item)
			opened, _ := r.open(item)
			text := kindText(opened.node)
			const resets = core.HeadersXSeconds | core.HeadersXMillis | core.HeadersXEpoch
			switch {
			case !ok:
			case got == core.HeadersOff && len(items) > 1:
				r.bad(item, "off: cannot stand beside others", "")
			case got == core.HeadersOff:
			case h&got != 0:
				r.bad(item, text+": stands twice", "")
			case got&twins != 0 && h&twins != 0:
				r.bad(item, text+": "+sameHeaders, "write one of them")
			case got&resets != 0 && h&resets != 0:
				r.bad(item, text+": X-RateLimit-Reset can have only one form", "")
			default:
				h |= got
			}
		}
		if h == 0 {
			h = core.HeadersOff
		}
		return h, len(r.errs) == before
	}}
}

// oneTwin notes policies whose headers cannot be in one response. Clients see
// nothing of a dry run.
func (r *reader) oneTwin(policies []*Policy) {
	var first *Policy
	for _, p := range policies {
		switch h := p.Headers & twins; {
		case h == 0 || p.DryRun:
		case first == nil:
			first = p
		case h != first.Headers&twins:
			r.bad(p.headersAt, fmt.Sprintf("%s, and the policy %s in line %d has the other one", sameHeaders, first.Name, begin(first.headersAt.node).Position.Line),
				"write one of them in all policies")
		}
	}
}
