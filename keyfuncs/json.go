package keyfuncs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// jsonValue reads the value at a path of a JSON object (RFC 8259). The objects
// on the path are read member by member, so that a name that stands twice is
// seen; all else is skipped as a whole.
func jsonValue(body []byte, path []string) (string, error) {
	p := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(body))}
	err := p.object(path)
	if err == nil {
		if _, err = p.Token(); errors.Is(err, io.EOF) {
			return p.field.value, nil
		}
	}
	if errors.Is(err, core.ErrBadRequest) {
		return "", err
	}
	return "", nil // malformed, or with something behind it: no value
}

type jsonReader struct {
	*json.Decoder
	field once
}

var errNoObject = errors.New("keyfuncs: no JSON object")

// object reads an object of which the member path[0] is wanted.
func (p *jsonReader) object(path []string) error {
	if token, err := p.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	found := false
	for p.More() {
		name, err := p.Token() // of an object that is well formed, a string
		if err != nil {
			return err
		}
		if err := p.field.field(); err != nil {
			return err
		}
		if s, _ := name.(string); !strings.EqualFold(s, path[0]) {
			if err := p.Decode(new(skipped)); err != nil {
				return err
			}
			continue
		}
		if found {
			return errTwice
		}
		found = true
		if err := p.member(path); err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

// member reads the value of the member that is wanted.
func (p *jsonReader) member(path []string) error {
	var raw json.RawMessage
	if err := p.Decode(&raw); err != nil {
		return err
	}
	if len(path) == 1 {
		p.field.value = jsonScalar(raw)
		return nil
	}
	inner := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(raw)), field: p.field}
	err := inner.object(path[1:])
	if p.field = inner.field; errors.Is(err, errNoObject) {
		return nil // not an object: the field is not there
	}
	return err
}

// skipped is a value that nobody looks at.
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

// jsonNumber makes one text of all spellings of a number (1, 1.0, 10e-1), of
// which handlers see one and the same. Whole numbers stay as they are written,
// however large; one that no float64 can hold stays as it is.
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
