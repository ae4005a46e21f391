package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

func TestCompressedLogs(t *testing.T) {
	bz2, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"zstd": zstded(t, "a\nb\n"), "bzip2": bz2, "a byte order mark": []byte("\xef\xbb\xbfa\nb")} {
		if lines, _ := read(t, text); strings.Join(lines, ",") != "a,b" {
			t.Errorf("%s: %q", name, lines)
		}
	}
	for text, want := range map[string]string{
		"\xfd7zXZ\x00 and more": "is compressed by xz (unpack it first: xz -dc", "\x04\x22\x4d\x18abc": "is compressed by lz4", "\x1f\x9dabc": "is compressed by compress",
		"PK\x03\x04abc": "is a zip archive", "7z\xbc\xaf": "is a 7z archive", "\xff\xfea\x00": "is text in UTF-16", "a\x00b": "is not text",
		"BZhello": "bzip2",
	} {
		err := accesslog.Lines(strings.NewReader(text), func(int, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v, want %s", text, err, want)
		}
	}
}

// A log that zstd --long has compressed requires a window of 128 MiB. No log may require more.
func TestTheLargestWindowOfZstd(t *testing.T) {
	for log, want := range map[byte]bool{23: true, 27: true, 28: false} { // the logarithm of the window
		frame := "\x28\xb5\x2f\xfd\x00" + string([]byte{(log - 10) << 3}) + "\x21\x00\x00a\nb\n" // one block of 4 bytes
		lines := 0
		err := accesslog.Lines(strings.NewReader(frame), func(int, []byte) error { lines++; return nil })
		if (err == nil) != want || (lines == 2) != want {
			t.Errorf("a window of 2^%d bytes: %d lines, %v, want it read: %t", log, lines, err, want)
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
	for name, packed := range map[string][]byte{"gzip": gzipped(t, text.String()), "zstd": zstded(t, text.String())} {
		for _, size := range []int{4, 5, 12, len(packed) / 2, len(packed) - 3} {
			if name == "zstd" && size == 4 {
				size = 6
			}
			read := 0
			err := accesslog.Lines(bytes.NewReader(packed[:size]), func(number int, line []byte) error {
				if want := fmt.Sprintf("line %d %x", read, read*7919*7919); string(line) != want || number != read+1 {
					t.Fatalf("%s: line %d is %q, want %q", name, number, line, want)
				}
				read++
				return nil
			})
			if !errors.Is(err, accesslog.ErrTruncated) {
				t.Errorf("%s, %d bytes of %d: %v", name, size, len(packed), err)
			}
			if size == len(packed)/2 && (read < 1000 || read > 4000) {
				t.Errorf("%s: %d lines are in half of the log", name, read)
			}
		}
	}
	bz2, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4, 20, len(bz2) - 1} {
		if err := accesslog.Lines(bytes.NewReader(bz2[:size]), func(int, []byte) error { return nil }); !errors.Is(err, accesslog.ErrTruncated) {
			t.Errorf("bzip2, %d bytes of %d: %v", size, len(bz2), err)
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

func zstded(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(4096))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bzipped is "a\nb\n" as bzip2 compresses it.
const bzipped = "QlpoOTFBWSZTWTyFQRIAAAFBAAAQMAAgADDMDHqCcXckU4UJA8hUESA="
