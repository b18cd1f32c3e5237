package version

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The ranks of two versions never contradict their order, also around the highest numbers that a rank contains.
func TestRanksFollowTheOrderOfVersions(t *testing.T) {
	number := rapid.SampledFrom([]uint64{
		0, 1, 2, 1<<12 - 1, 1 << 12, 1<<12 + 1, 1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 40,
	})
	tag := rapid.Custom(func(t *rapid.T) string {
		pre := rapid.SampledFrom([]string{"", "", "-rc.1", "-rc.2"}).Draw(t, "prerelease")
		if rapid.IntRange(0, 9).Draw(t, "partial") == 0 {
			return "latest"
		}
		return fmt.Sprintf("v%d.%d.%d%s", number.Draw(t, "major"), number.Draw(t, "minor"), number.Draw(t, "patch"), pre)
	})
	rapid.Check(t, func(t *rapid.T) {
		v, w := Parse(tag.Draw(t, "first")), Parse(tag.Draw(t, "second"))
		if v.Compare(&w) < 0 && v.Rank() > w.Rank() || v.Compare(&w) == 0 && v.Usable() && v.Rank() != w.Rank() {
			t.Fatalf("%s has rank %d, and %s has rank %d", v.Tag, v.Rank(), w.Tag, w.Rank())
		}
		if v.Rank() >= 1<<RankBits {
			t.Fatalf("the rank %d of %s has more than %d bits", v.Rank(), v.Tag, RankBits)
		}
	})
	for _, tags := range [][2]string{
		{"v0.0.0", "v4095.32768.0"}, {"v4095.32768.0", "v4096.0.0"}, {"v1.32768.0", "v2.0.0"}, {"v1.2.65536", "v1.3.0"},
	} {
		v, w := Parse(tags[0]), Parse(tags[1])
		if v.Rank() > w.Rank() {
			t.Errorf("%s has rank %d, and %s has rank %d", v.Tag, v.Rank(), w.Tag, w.Rank())
		}
	}
	if v, w := Parse("v1.2.3"), Parse("v1.2.4"); v.Rank() == w.Rank() {
		t.Error("v1.2.3 and v1.2.4 have the same rank")
	}
}
