//go:build !linux

package usage

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

func of(int) (Usage, error) { return Usage{}, unsupported() }

func resetPeak(int) error { return unsupported() }

func machine() (time.Duration, error) { return 0, unsupported() }

func unsupported() error {
	return fmt.Errorf("the resource usage of processes is not available on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
