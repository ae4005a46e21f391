package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

func TestLogsThatAreNoText(t *testing.T) {
	for text, want := range map[string]string{
		"\x28\xb5\x2f\xfd and more": "is compressed by zstd (unpack it first: zstd -dc LOG | floodgate replay FILE -", "BZh9": "is compressed by bzip2", "\xfd7zXZ\x00 and more": "is compressed by xz",
		"\x04\x22\x4d\x18abc": "is compressed by lz4", "PK\x03\x04abc": "is a zip archive", "\xff\xfea\x00": "is text in UTF-16", "a\x00b": "is not text",
	} {
		err := accesslog.Lines(strings.NewReader(text), func(int, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v, want %s", text, err, want)
		}
	}
}

// A compressed log without its end is read as far as it goes: every whole line, and
// no part of one.
func TestACompressedLogThatEndsInTheMiddle(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "line %d %x\n", i, i*7919*7919)
	}
	packed := gzipped(t, text.String())
	for _, size := range []int{4, 5, 12, len(packed) / 2, len(packed) - 3} {
		read := 0
		err := accesslog.Lines(bytes.NewReader(packed[:size]), func(number int, line []byte) error {
			if want := fmt.Sprintf("line %d %x", read, read*7919*7919); string(line) != want || number != read+1 {
				t.Fatalf("line %d is %q, want %q", number, line, want)
			}
			read++
			return nil
		})
		if !errors.Is(err, accesslog.ErrTruncated) {
			t.Errorf("%d bytes of %d: %v", size, len(packed), err)
		}
		if size == len(packed)/2 && (read < 1000 || read > 4000) {
			t.Errorf("%d lines are in half of the log", read)
		}
	}
	// What has an end and is wrong is not truncated.
	wrong := gzipped(t, "a\nb\n")
	wrong[len(wrong)-1] ^= 1
	if err := accesslog.Lines(bytes.NewReader(wrong), func(int, []byte) error { return nil }); err == nil || errors.Is(err, accesslog.ErrTruncated) {
		t.Errorf("a wrong length: %v", err)
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
