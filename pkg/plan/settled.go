package plan

// IsSettled reports whether Establish would not change a live object, judged by metadata without managed fields, such
// as that of a watch. It is false in case of doubt: without a recorded write of this generation, and for an object with
// labels or annotations that are not desired, which a former version of the package may have set.
func IsSettled(d Desired, l Live, known map[Ref]Written, who Requester) bool {
	w, ok := known[d.Ref]
	if !ok || w.UID != l.UID || w.Generation == 0 || w.Generation != l.Generation || len(l.Owners) == 0 {
		return false
	}
	annotations := d.annotations()
	annotations[AdoptedByAnnotation], annotations[CABundleHashAnnotation] = "", ""
	return hasNoOtherKeys(l.Labels, d.Labels) && hasNoOtherKeys(l.Annotations, annotations) &&
		Establish([]Desired{d}, map[Ref]Live{d.Ref: l}, known, who).Unchanged == 1
}

// hasNoOtherKeys reports whether all keys of a map are keys of another one.
func hasNoOtherKeys(m, of map[string]string) bool {
	for k := range m {
		if _, ok := of[k]; !ok {
			return false
		}
	}
	return true
}
