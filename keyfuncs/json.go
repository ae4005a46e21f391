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

// jsonValue returns the value at a path of a JSON object (RFC 8259), or the value of the object's
// member flat if flat is not "". It reads the objects on the path member by member, so that it sees
// a name that is given twice, and skips all other values. It compares names with sameName. If
// handlers may read the value in different ways, it returns faultUnreadable and the text of the
// value.
func jsonValue(body []byte, path []string, flat string) (string, error) {
	p := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(body)), flat: flat}
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
	return "", faultUnreadable // malformed, or text follows the object
}

// startsAsJSON reports whether a body begins as a JSON object does. The rest does not matter:
// json.Decoder does not read on after the object.
func startsAsJSON(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{"))
}

type jsonReader struct {
	*json.Decoder
	flat       string
	field      once
	unreadable bool // handlers may read the value in different ways, or not at all
}

var errNoObject = errors.New("keyfuncs: no JSON object")

// object reads an object and sets the field from its member path[0].
func (p *jsonReader) object(path []string) error {
	if token, err := p.Token(); token != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	found := false
	for p.More() {
		name, err := p.Token() // a string, if the object is well formed
		if err != nil {
			return err
		}
		if err := p.field.field(); err != nil {
			return err
		}
		switch s, _ := name.(string); {
		case sameName(s, path[0]):
			if found {
				return faultTwice
			}
			found = true
			err = p.member(path)
		case p.flat != "" && sameName(s, p.flat):
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

// member sets the field from the value of a member.
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
	inner := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(raw)), field: p.field}
	err := inner.object(path[1:])
	p.field, p.unreadable = inner.field, p.unreadable || inner.unreadable
	if errors.Is(err, errNoObject) {
		p.unreadable = p.unreadable || raw[0] == '['
		return nil // the object has no such field
	}
	return err
}

// skipped accepts any JSON value and discards it.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// jsonScalar returns the text of a string, a number or a boolean. It returns "" for null, an array
// and an object.
func jsonScalar(raw []byte) string {
	switch {
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	case raw[0] == 't', raw[0] == 'f':
		return string(raw)
	case isNumber(raw):
		return jsonNumber(string(raw))
	}
	return ""
}

// isNumber reports whether a JSON value is a number.
func isNumber(raw []byte) bool { return bytes.IndexAny(raw, "-0123456789") == 0 }

// isOddNumber reports whether raw is a number that handlers read in different ways. A number of
// 2^53 or more, or of -2^53 or less, is rounded to a float64. A number with a fraction is cut to an
// integer. A number with an exponent, with a zero after the point, or -0 is written differently.
func isOddNumber(raw []byte) bool {
	if !isNumber(raw) {
		return false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	return err != nil || v >= 1<<53 || v <= -1<<53 || v == 0 && raw[0] == '-'
}

// jsonNumber returns one text for all spellings of a number (1, 1.0, 10e-1), because handlers read
// the same number. It returns a number without a sign, a fraction and an exponent unchanged,
// however large it is. It also returns a number unchanged that is too large for a float64.
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

// isMember reports whether value is a JSON object that has a member with the name, at any depth.
// value is the value of another field of a form. If the handler's struct has a struct or a map for
// that field, Gin reads the value as JSON. Gin keeps the members that it has read before an error.
func (s *spelling) isMember(value string) bool {
	if !startsAsJSON([]byte(value)) {
		return false
	}
	name := s.parts[len(s.parts)-1]
	d := json.NewDecoder(strings.NewReader(value))
	var objects []bool // for each open object or array: whether it is an object
	var isName bool    // the next token is the name of a member, or ends the object
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		text, isText := token.(string)
		if isName && isText {
			if sameName(text, name) {
				return true
			}
			isName = false
			continue
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			objects = append(objects, token == json.Delim('{'))
		case json.Delim('}'), json.Delim(']'):
			objects = objects[:len(objects)-1]
		}
		if len(objects) == 0 {
			return false
		}
		isName = objects[len(objects)-1]
	}
}
