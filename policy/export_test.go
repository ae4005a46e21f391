package policy

// AnotherInstance lets several Sets of this process count for policies of the same
// names in the store that their files describe, as several instances do.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }
