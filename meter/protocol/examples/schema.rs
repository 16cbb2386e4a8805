//! Writes `schema.json`: the JSON Schema of what the meter reads and writes.

fn main() {
    println!("{}", ensign_protocol::schema::text());
}
