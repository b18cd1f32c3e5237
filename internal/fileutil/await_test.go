package fileutil

import (
	"context"
	"errors"
	"testing"
)

// A computation is not awaited after an interruption.
func TestAwaitEndsWithTheContext(t *testing.T) {
	if got, err := Await(t.Context(), func() (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	failed := errors.New("failed")
	if _, err := Await(t.Context(), func() (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	if _, err := Await(ctx, func() (int, error) {
		interrupt()
		<-release
		return 7, nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the interruption: %v", err)
	}
}
