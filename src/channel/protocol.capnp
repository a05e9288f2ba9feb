@0xb1d5c9a7e3f04286;
# The wire format of channel/message.h. Each message is inside a frame (frame.h); docs/formats.md describes both.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("cadre::channel::wire");

const version :UInt16 = 4;
# Raised when a reader of the old version could misread a new message. Both ends refuse any other version.

struct Value {
  union {
    null @0 :Void;
    bool @1 :Bool;
    integer @2 :Int64;
    real @3 :Float64;
    text @4 :Text;
    list @5 :List(Value);
    dict @6 :List(Entry);
    reference :group {
      kind @7 :Text;
      id @8 :Text;
    }
  }
}

struct Entry {
  key @0 :Text;
  value @1 :Value;
}

struct FromController {
  version @0 :UInt16;
  union {
    assignment :group {
      entry @1 :Text;
      payload @2 :Value;
    }
    answer :group {
      verdict @3 :Verdict;
      checkpoint @4 :Text;
      assignment @5 :Value;
    }
    storeReply :group {
      value @6 :Data;
      number @7 :Int64;
      error @8 :Text;
    }
    reply :group {
      content @9 :Value;
      error @10 :Text;
    }
  }
  call @11 :UInt64;  # that a reply is to
}

enum Verdict {
  goOn @0;
  stop @1;
  save @2;
  takeOver @3;
}

struct FromWorker {
  version @0 :UInt16;
  union {
    report :group {
      step @1 :Int64;
      metrics @2 :List(Entry);
      checkpoint @3 :Text;
      details @13 :Value;
      offersCheckpoint @16 :Bool;
    }
    finished @4 :Value;
    failed @5 :Text;
    declined @6 :Void;
    storeRequest :group {
      operation @7 :StoreOperation;
      keys @8 :List(Text);
      value @9 :Data;
      expected @10 :Data;
      amount @11 :Int64;
      timeoutMs @12 :Int64;
    }
    request @14 :Value;
    notice @15 :Value;
  }
  call @17 :UInt64;  # number of a request
}

enum StoreOperation {
  set @0;
  get @1;
  wait @2;
  contains @3;
  add @4;
  compareAndSet @5;
  erase @6;
  size @7;
}
