// Package frame compresses and decompresses single zstd frames whose sizes are known and limited.
package frame

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// window is the distance up to which an encoder looks for repetitions. A frame is a single segment, so a decoder needs
// no memory for a window beside its output.
const window = 8 << 20

// ErrTooLarge is the error for a frame that declares, or has, more bytes than its limit.
var ErrTooLarge = errors.New("the content is larger than the limit")

// A Coder compresses and decompresses frames. Equal content has equal frames. The zero value is ready to use. It is not
// safe for concurrent use.
type Coder struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// Encode returns the content as one frame with its size and a checksum.
func (c *Coder) Encode(content []byte) ([]byte, error) {
	if c.encoder == nil {
		var err error
		c.encoder, err = zstd.NewWriter(nil,
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderCRC(true),
			zstd.WithWindowSize(window), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
		if err != nil {
			return nil, err
		}
	}
	return c.encoder.EncodeAll(content, nil), nil
}

// DecodeInto returns the content of exactly one frame, which overwrites buffer if its capacity suffices. The frame must
// declare its size, which must not exceed most.
func (c *Coder) DecodeInto(buffer, packed []byte, most int) ([]byte, error) {
	size, err := declared(packed, most)
	if err != nil {
		return nil, err
	}
	if c.decoder == nil {
		c.decoder, err = zstd.NewReader(
			nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true),
		)
		if err != nil {
			return nil, err
		}
	}
	if cap(buffer) < size {
		buffer = make([]byte, 0, size)
	}
	out, err := c.decoder.DecodeAll(packed, buffer[:0:size])
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot decompress: %w", err)
	case len(out) != size:
		return nil, fmt.Errorf("the content has %d bytes, declared are %d", len(out), size)
	}
	return out, nil
}

// declared returns the declared size of the content.
func declared(packed []byte, most int) (int, error) {
	var h zstd.Header
	if err := h.Decode(packed); err != nil {
		return 0, fmt.Errorf("cannot read the header of a frame: %w", err)
	}
	switch {
	case h.Skippable, !h.HasFCS, !h.SingleSegment, !h.HasCheckSum && h.FrameContentSize > 0:
		return 0, errors.New("the frame has no size or no checksum, or is not a single segment")
	case h.FrameContentSize > uint64(most):
		return 0, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, h.FrameContentSize, most)
	}
	return int(h.FrameContentSize), nil
}

// Encode compresses content.
func Encode(content []byte) ([]byte, error) { return new(Coder).Encode(content) }

// Decode returns the content of one frame. The frame must declare its size, which must not exceed most.
func Decode(packed []byte, most int) ([]byte, error) { return new(Coder).DecodeInto(nil, packed, most) }
