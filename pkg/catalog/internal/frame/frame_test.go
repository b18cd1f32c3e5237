package frame

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestFramesRoundTripAndAreDeterministic(t *testing.T) {
	c := new(Coder)
	var buffer []byte
	for _, content := range [][]byte{
		nil, []byte("a"), bytes.Repeat([]byte("the quick brown fox "), 100_000), []byte("bc"),
	} {
		first, err := c.Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Encode([]byte("something else"))
		again, err := c.Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		other, err := Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) || !bytes.Equal(first, other) {
			t.Errorf("%d bytes have several encodings", len(content))
		}
		buffer, err = c.DecodeInto(buffer, first, len(content))
		if err != nil || !bytes.Equal(buffer, content) {
			t.Errorf("%d bytes are read back as %d (%v)", len(content), len(buffer), err)
		}
	}
}

func TestLargeContentIsRefusedBeforeItIsDecompressed(t *testing.T) {
	bomb, err := Encode(make([]byte, 1<<24))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(bomb, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestFramesWithFalseSizesAreRefused(t *testing.T) {
	stream := func(opts ...zstd.EOption) []byte {
		e, err := zstd.NewWriter(nil, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return e.EncodeAll(bytes.Repeat([]byte("abc"), 1000), nil)
	}
	good := stream(zstd.WithSingleSegment(true))
	lying := bytes.Clone(good)
	lying[5]++ // the declared size
	for name, packed := range map[string][]byte{
		"two frames": append(bytes.Clone(good), good...), "trailing bytes": append(bytes.Clone(good), 0),
		"truncated":   good[:len(good)-1],
		"no checksum": stream(zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false)),
		"window":      stream(zstd.WithSingleSegment(false)),
		"wrong size":  lying, "empty": nil, "skippable": {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0},
	} {
		if _, err := Decode(packed, 1<<20); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Decode(good, 1<<20); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode([]byte("hello"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 16
		if got, err := Decode(packed, most); err == nil && len(got) > most {
			t.Errorf("%d bytes exceed the limit", len(got))
		}
	})
}
