package keyfuncs

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
)

// maxFields is how many fields of a body are read.
const maxFields = 1000

// once keeps the value of a field that may be given only once.
type once struct {
	value string
	found bool
	count int // fields seen
}

// field counts a field of any name.
func (o *once) field() error {
	if o.count++; o.count > maxFields {
		return faultMany
	}
	return nil
}

// set notes the value of the wanted field.
func (o *once) set(value string) error {
	if o.found {
		return faultTwice
	}
	o.value, o.found = value, true
	return nil
}

// formValue reads application/x-www-form-urlencoded (URL standard, section
// 5.1). It refuses a field of the name that net/url drops and fasthttp reads:
// one with a malformed escape or with a semicolon.
func formValue(body []byte, name *spelling) (string, error) {
	var o once
	for part := range strings.SplitSeq(string(body), "&") {
		if part == "" {
			continue
		}
		if err := o.field(); err != nil {
			return "", err
		}
		key, value, _ := strings.Cut(part, "=")
		key, keyOK := decode(key)
		if !name.matches(key) {
			if value, _ := decode(value); name.deep && name.isMember(value) {
				return "", faultUnreadable
			}
			continue
		}
		value, valueOK := decode(value)
		if !keyOK || !valueOK || strings.Contains(part, ";") {
			return "", faultEscape
		}
		if err := o.set(value); err != nil {
			return "", err
		}
	}
	return o.value, nil
}

// multipartValue reads multipart/form-data (RFC 7578). With faultUnreadable it
// returns the value that was found before the body became malformed.
func multipartValue(body []byte, boundary string, name *spelling) (string, error) {
	if boundary == "" {
		return "", faultUnreadable
	}
	var o once
	file := false
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextPart() // as net/http reads it
		switch {
		case err == io.EOF && !file: //nolint:errorlint // a wrapped EOF is not the end of the form
			return o.value, nil
		case err != nil:
			return o.value, faultUnreadable
		}
		if err := o.field(); err != nil {
			return "", err
		}
		if !name.matches(part.FormName()) {
			if name.deep && part.FileName() == "" {
				if value, err := io.ReadAll(part); err != nil || name.isMember(string(value)) {
					return "", faultUnreadable
				}
			}
			continue
		}
		var value []byte
		if part.FileName() != "" {
			file = true
		} else if value, err = io.ReadAll(part); err != nil { // a body that is in memory, and bounded
			return "", faultUnreadable
		}
		if err := o.set(string(value)); err != nil {
			return "", err
		}
	}
}

// rawBoundary returns the boundary that fasthttp finds in a Content-Type, which
// does not read the header's parameters as package mime does.
func rawBoundary(contentType string) string {
	rest, found := strings.CutPrefix(contentType, "multipart/form-data;")
	for found {
		var parameter string
		parameter, rest, found = strings.Cut(rest, ";")
		value, named := strings.CutPrefix(strings.TrimLeft(parameter, " "), "boundary")
		if !named {
			continue
		}
		value, named = strings.CutPrefix(value, "=")
		if !named {
			return ""
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return value
	}
	return ""
}

// isUnreadable reports whether a handler may read what the parsers cannot.
func isUnreadable(err error) bool { return errors.Is(err, faultUnreadable) }
