package fetch_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/noproxy"
)

func TestMain(m *testing.M) { noproxy.Main(m) }
