package leader

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// held is a Lease of another holder.
type held struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
}

func (h held) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return new(h.record), nil, nil
}
func (held) Identity() string { return "first" }
func (held) Describe() string { return "default/lease" }

// A manager that preempts takes each Lease, waits for the former holder only as long as a manager needs to notice that,
// and does not take the Lease back once another manager may work.
func TestPreemption(t *testing.T) {
	for name, tc := range map[string]struct {
		declared int
		renewed  time.Duration // since the last renewal; negative if the Lease was never held
		taken    bool
		wait     time.Duration
	}{
		"short":             {2, -1, true, 2 * time.Second},
		"endless":           {math.MaxInt32, -1, true, defaultLeaseDuration},
		"negative":          {-5, -1, true, 0},
		"lost and writing":  {10, time.Second, true, defaultLeaseDuration},
		"lost and deposed":  {10, time.Minute, false, 0},
		"lost at the limit": {10, 20 * time.Second, true, defaultLeaseDuration},
	} {
		t.Run(name, func(t *testing.T) {
			now := &clock{at: time.Unix(1000, 0)}
			f := newFence(20*time.Second, now.now)
			if tc.renewed >= 0 {
				f.renew(now.at)
				now.advance(tc.renewed)
			}
			l := &fencedLock{
				Interface: held{record: resourcelock.LeaderElectionRecord{
					HolderIdentity: "other", LeaseDurationSeconds: tc.declared,
				}},
				fence: f, exclusive: true, preempt: true, refuse: func() {}, allowed: &atomic.Bool{}, wait: func(
					string,
				) {
				}, preempted: func(string) {},
			}
			record, _, err := l.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if taken := record.HolderIdentity == ""; taken != tc.taken || l.failure() != nil {
				t.Errorf("taken %t, want %t; failure %v", taken, tc.taken, l.failure())
			}
			if got := l.handover(); tc.taken && !got.Equal(now.at.Add(tc.wait)) ||
				!tc.taken && (!got.IsZero() || f.term.Err() == nil) {
				t.Errorf("the work starts at %v, want %v after %v", got, tc.wait, now.at)
			}
		})
	}
}
