// Package sorting sorts whole numbers by two algorithms, and is the service of net/rpc that does so by request.
package sorting

// Number is what both services sort: int on net/rpc, as the original had it, int64 on gRPC.
type Number interface{ ~int | ~int64 }

// Fixed is the array that the original sorted in every call.
var Fixed = []int{38, 27, 43, 3, 9, 82, 10}

// Merge sorts by merging halves. Gives a new slice.
func Merge[N Number](values []N) []N {
	sorted := append([]N{}, values...)
	mergeInto(sorted, make([]N, len(values)))
	return sorted
}

func mergeInto[N Number](values, room []N) {
	if len(values) < 2 {
		return
	}
	half := len(values) / 2
	left, right := values[:half], values[half:]
	mergeInto(left, room[:half])
	mergeInto(right, room[half:])
	copy(room, values)
	left, right = room[:half], room[half:]
	for place := range values {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			values[place], left = left[0], left[1:]
		} else {
			values[place], right = right[0], right[1:]
		}
	}
}

// Quick sorts by partitioning around the middle value. Gives a new slice.
func Quick[N Number](values []N) []N {
	sorted := append([]N{}, values...)
	quickWithin(sorted)
	return sorted
}

// quickWithin recurses into the smaller part alone, so that its depth stays under the logarithm of the length.
func quickWithin[N Number](values []N) {
	for len(values) > 1 {
		pivot, low, high := values[len(values)/2], 0, len(values)-1
		for low <= high {
			for values[low] < pivot {
				low++
			}
			for values[high] > pivot {
				high--
			}
			if low <= high {
				values[low], values[high] = values[high], values[low]
				low, high = low+1, high-1
			}
		}
		left, right := values[:high+1], values[low:]
		if len(left) > len(right) {
			left, right = right, left
		}
		quickWithin(left)
		values = right
	}
}

// Args is what to sort.
type Args struct{ Array []int }

// SortResponse is what was sorted.
type SortResponse struct{ Array []int }

// SortService has the procedures of net/rpc, named as in the original.
type SortService struct{}

// MergeSortRemote sorts by merging halves.
func (SortService) MergeSortRemote(args *Args, reply *SortResponse) error {
	reply.Array = Merge(args.Array)
	return nil
}

// QuickSortRemote sorts by partitioning.
func (SortService) QuickSortRemote(args *Args, reply *SortResponse) error {
	reply.Array = Quick(args.Array)
	return nil
}
