package keyfuncs

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/url"
	"strings"
)

// formValue reads application/x-www-form-urlencoded (URL standard, section
// 5.1). A part with a malformed escape is taken as the bytes that it is.
func formValue(body []byte, name string) (string, error) {
	var o once
	for rest := string(body); rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "&")
		if part == "" {
			continue
		}
		if err := o.field(); err != nil {
			return "", err
		}
		key, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(unescape(key), name) {
			if err := o.set(unescape(value)); err != nil {
				return "", err
			}
		}
	}
	return o.value, nil
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// multipartValue reads multipart/form-data (RFC 7578). What can be read before
// the body becomes malformed counts: handlers may read as far.
func multipartValue(body []byte, boundary, name string) (string, error) {
	if boundary == "" {
		return "", nil
	}
	var o once
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextPart() // as net/http reads it
		if err != nil {
			return o.value, nil //nolint:nilerr // the end, or malformed from here on
		}
		if err := o.field(); err != nil {
			return "", err
		}
		if !strings.EqualFold(part.FormName(), name) {
			continue
		}
		value := ""
		if part.FileName() == "" {
			b, err := io.ReadAll(part) // of a body that is in memory, and bounded
			if err != nil {
				return "", nil //nolint:nilerr // cut off: no value
			}
			value = string(b)
		}
		if err := o.set(value); err != nil {
			return "", err
		}
	}
}
