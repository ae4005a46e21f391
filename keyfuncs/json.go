package keyfuncs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonValue reads the value at a path of a JSON object (RFC 8259), or that of the
// object's member flat; "" is no member. It reads the objects on the path member
// by member, so that it sees a name that is given twice, and skips all other
// values. Names are compared by sameName. With faultUnreadable it returns the text
// of a number or a string that handlers may read in different ways.
func jsonValue(body []byte, path []string, flat string) (string, error) {
	p := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(body)), body: body, flat: flat}
	err := p.object(path)
	if err == nil {
		if _, err = p.Token(); errors.Is(err, io.EOF) {
			if p.unreadable {
				return p.field.value, faultUnreadable
			}
			return p.field.value, nil
		}
	}
	var f fault
	if errors.As(err, &f) {
		return "", f
	}
	return "", faultUnreadable // malformed, or with something after the object
}

// startsAsJSON reports whether a body begins with a JSON object. Something else
// may follow: json.Decoder does not look further.
func startsAsJSON(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{"))
}

type jsonReader struct {
	*json.Decoder
	body       []byte // all of it
	flat       string
	field      once
	unreadable bool // handlers may read the value in different ways, or none
}

var errNoObject = errors.New("keyfuncs: no JSON object")

// object reads an object of which the member path[0] is wanted.
func (p *jsonReader) object(path []string) error {
	if token, err := p.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	found := false
	hash, flatHash := nameHash(path[0]), nameHash(p.flat)
	for p.More() {
		from := p.InputOffset()
		name, err := p.Token() // of an object that is well formed, a string
		if err != nil {
			return err
		}
		h := memberHash(p.body[from:p.InputOffset()])
		if err := p.field.field(); err != nil {
			return err
		}
		switch s, _ := name.(string); {
		case sameName(s, path[0]), h == hash:
			if found {
				return faultTwice
			}
			found = true
			err = p.member(path)
		case p.flat != "" && (sameName(s, p.flat) || h == flatHash):
			err = p.member([]string{s})
		default:
			err = p.Decode(new(skipped))
		}
		if err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

// member reads the value of the wanted member.
func (p *jsonReader) member(path []string) error {
	var raw json.RawMessage
	if err := p.Decode(&raw); err != nil {
		return err
	}
	if len(path) == 1 {
		value := jsonScalar(raw)
		p.unreadable = p.unreadable || raw[0] == '{' || raw[0] == '[' || isOddNumber(raw) || strings.ContainsRune(value, utf8.RuneError)
		return p.field.set(value)
	}
	inner := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(raw)), body: raw, field: p.field}
	err := inner.object(path[1:])
	p.field, p.unreadable = inner.field, p.unreadable || inner.unreadable
	if errors.Is(err, errNoObject) {
		p.unreadable = p.unreadable || raw[0] == '['
		return nil // the field is not there
	}
	return err
}

// skipped decodes any value and drops it.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// jsonScalar returns the text of a string, a number or a boolean, "" for null,
// an array or an object.
func jsonScalar(raw []byte) string {
	switch c := raw[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	case c == 't', c == 'f':
		return string(raw)
	case c == '-' || '0' <= c && c <= '9':
		return jsonNumber(string(raw))
	}
	return ""
}

// isOddNumber reports whether raw is a number that handlers read in different
// ways: one of 2^53 or more, or of -2^53 or less, which is another one as a
// float64; one with a fraction, which an integer drops; and one with an exponent,
// a zero behind the point or a minus before a zero, whose text is another.
func isOddNumber(raw []byte) bool {
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	return err != nil || v >= 1<<53 || v <= -1<<53 || v == 0 && raw[0] == '-'
}

// jsonNumber returns the same text for all spellings of a number (1, 1.0,
// 10e-1), as handlers see the same number. A number without a fraction or an
// exponent is returned as it is, however large, and so is one that no float64
// can hold.
func jsonNumber(literal string) string {
	if strings.Trim(literal, "0123456789") == "" {
		return literal
	}
	v, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil:
		return literal
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.FormatInt(int64(v), 10)
	default:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
}
